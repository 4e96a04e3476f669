"""Densities on images at equal time: each is trained alone for as many seconds of processor time, then sampled.

    python benchmarks/densities.py [--data digits|mnist] [--seconds 20] [--seed 200] [--samples 200] [--out FOLDER]

The figure is a Fréchet distance in the features of a network whose name it carries: it orders these samplers, and may
not be held against figures of others. ``data`` is what as many other images of the data have: nothing gets below it
but by chance. Writes densities.json and densities.png, a row of samples a density.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from PIL import Image

from gedi.config import override, parse
from gedi.evaluating import _as_pictures, _feature_network
from gedi.evaluation import features_of, fid, precision_recall
from gedi.fitting import prepare
from gedi.pacing import pace
from gedi.presets import preset
from gedi.random import Streams
from gedi.report import figures

MANY = 100_000  # iterations: the time ends before
SHOWN = 12
AT_A_TIME = 100  # samples, for the memory
#: What each needs beside its name; chains and an encoder of their own are those of the preset with an energy.
DENSITIES = {
    "energy": ("-energy",),
    "contrastive": ("-energy", "density.kind=contrastive"),
    "energy-matching": ("-energy", "density.kind=energy-matching"),
    "jem": (
        "-energy", "density.own_encoder=false", "density.kind=jem", "model.head=linear", "model.finer=0",
        "stage2.terms.finer=null", "stage2.moves.merge.moments=[]",
    ),
    "autoregressive": ("", "density.kind=autoregressive", "walk.radius=0.3"),
    "vae": ("", "density.kind=vae", "walk.radius=0.3"),
    "denoiser": ("",),
    "kernel": ("", "density.kind=kernel", "walk.radius=0.3"),
}  # fmt: skip


def sampled(kind: str, data: str, seconds: float, seed: int, n: int):
    """Samples of a density after its time, what it took, and the run."""
    sibling, *settings = DENSITIES[kind]
    config = override(preset(data + sibling), [f"seed={seed}", f"stage1.iterations={MANY}", *settings])
    run = prepare(parse(override(config, ["stage2.iterations=0", "walk.composed=false"])))
    began = time.process_time()
    if run.trainer.course.legs:
        pace(run.trainer, seconds, time.process_time)
    took = time.process_time() - began
    steps = run.trainer.course.legs[0].stage.iterations if run.trainer.course.legs else 0
    model, density = run.trainer.model.eval(), run.trainer.density
    began = time.process_time()
    streams = Streams(seed)
    points = torch.cat([density.sample(model, AT_A_TIME, streams[f"{i}"]) for i in range(-(-n // AT_A_TIME))])
    return points, {"seconds": took, "steps": steps, "seconds to sample": time.process_time() - began}, run


def main() -> None:
    """Train, sample, compare, draw."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", choices=("digits", "mnist"))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=200)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=list(DENSITIES))
    parser.add_argument("--out", type=Path, default=Path("densities"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    record = given.out / "densities.json"
    found = json.loads(record.read_text()) if record.is_file() else {}
    network, n = _feature_network(None), given.samples
    for kind in given.only:
        points, costs, run = sampled(kind, given.data, given.seconds, given.seed, n)
        pixels = run.data.test.pixels
        # two halves of the images that nothing was learnt from, in an order that is no class's
        order = torch.randperm(len(run.data.test), generator=torch.Generator().manual_seed(0))
        real, others = (_as_pictures(run.data.test[part], pixels) for part in (order[:n], order[n : 2 * n]))
        for name, pictures in ((kind, _as_pictures(points[:n], pixels)), ("data", others)):
            figures_of = {key: round(value, 4) for key, value in fid(real, pictures, network).items()}
            near = precision_recall(features_of(real, network), features_of(pictures, network))
            found[name] = {**(costs if name == kind else {}), **figures_of, **near}
            torch.save(pictures[:SHOWN, :1].clone(), given.out / f"{name}.pt")
        record.write_text(json.dumps({**found, "about": {**vars(given), "out": "", "network": network.name}}, indent=2))
        print(kind, found[kind], flush=True)
    draw(given.out, [name for name in ("data", *DENSITIES) if (given.out / f"{name}.pt").is_file()])


def draw(out: Path, names: list[str]) -> Path:
    """A row of samples for each."""
    figure, axes = figures.new_figure(1, len(names), size=1.0)
    figure.set_size_inches(7.5, 0.62 * len(names))
    for ax, name in zip(axes, names, strict=True):
        ax.imshow(torch.cat(list(torch.load(out / f"{name}.pt", weights_only=True)[:, 0]), dim=1), cmap="gray")
        ax.set_xticks([])
        ax.set_yticks([ax.get_ylim()[0] / 2], [name], fontsize=8)
        ax.tick_params(length=0)
    path = figures.save(figure, out / "densities.png")
    with Image.open(path) as image:
        image.convert("L").quantize(24).save(path, optimize=True)
    return path


if __name__ == "__main__":
    main()
