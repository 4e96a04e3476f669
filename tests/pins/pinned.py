"""Short runs whose every bit is pinned: a change of structure must leave them as they are.

    python tests/pins/pinned.py           # compare with digests.json
    python tests/pins/pinned.py --write   # record anew; the commit says why the bits may differ

A digest covers the weights that are trained, the buffers and the value of every logged figure, in order. Names are no
part of it: a term may be called otherwise, and where it stands among the tensors may change, but not what it computes.
Rounding differs between kinds of machine, so the record says on which arithmetic it was made.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from gedi.config import Config, override, parse
from gedi.directory import RunDirectory
from gedi.fitting import Prepared, Stopped, prepare, train
from gedi.methods import has_density
from gedi.presets import preset

RECORD = Path(__file__).with_name("digests.json")
SMALL = ["data.n_train=300", "data.n_test=100", "walk.steps=5", "sampling.buffer=500", "log_every=10", "guard.every=10"]
SHORT = [*SMALL, "stage1.iterations=40", "stage2.iterations=40"]
CONVOLUTIONS = [
    "model.width=4", "model.latent=8", "model.projector=8", "model.embedding=8", "sampling.buffer=64",
    "sampling.chains=8", "sampling.steps=2", "stage1.iterations=20", "stage1.batch_size=8", "stage2.iterations=30",
    "stage2.batch_size=32", "log_every=5", "guard.every=10",
]  # fmt: skip


def arithmetic() -> str:
    """What this machine makes of a few operations: where it differs, so may every run."""
    g = torch.Generator().manual_seed(0)
    x, k = torch.randn(64, 3, 16, 16, generator=g), torch.randn(8, 3, 3, 3, generator=g)
    a = torch.randn(100, 100, generator=g)
    found = [
        torch.conv2d(x, k),
        a @ a,
        a.sin(),
        a.exp(),
        a.softmax(1),
        torch.linalg.cholesky(a @ a.t() + torch.eye(100)),
    ]
    return f"torch {torch.__version__.partition('+')[0]}, {_digest([], found)}"


def run(name: str, *settings: str) -> Prepared:
    """A run of a preset, changed, ready to train, its records kept in ``trainer.records``."""
    prepared = prepare(parse(override(preset(name), settings)))
    prepared.trainer.records = []  # type: ignore[attr-defined]
    prepared.trainer.on_log = prepared.trainer.records.append  # type: ignore[attr-defined]
    return prepared


def trained(name: str, *settings: str) -> str:
    """The digest of a run."""
    prepared = run(name, *settings)
    train(prepared)
    return of_run(prepared)


def of_run(prepared: Prepared) -> str:
    """The digest of a trained run."""
    trainer = prepared.trainer
    weights = _trained(trainer.model.state_dict(), prepared.method_config)
    return _digest(trainer.records, weights)  # type: ignore[attr-defined]


def _trained(weights: dict[str, Tensor], config: Config) -> list[Tensor]:
    """The tensors that training shapes: those of the density only where one is trained."""
    density = ("direction", "generative_encoder", "density")
    return [x for name, x in weights.items() if has_density(config) or not name.startswith(density)]


def images(folder: Path, channels: int, side: int) -> str:
    """A file of images, with something in them to tell apart."""
    draw = np.random.default_rng(3)
    n = 160
    kind = draw.integers(0, 10, n)
    rows = np.arange(side)[None, :, None] * (1 + kind[:, None, None] % 5) + np.arange(side)[None, None] * (
        kind[:, None, None] // 5
    )
    pictures = (np.sin(rows / 4) * 90 + 120)[:, None].repeat(channels, 1) + draw.normal(
        0, 20, (n, channels, side, side)
    )
    path = folder / f"images{channels}x{side}.npz"
    shape = (0, 2, 3, 1) if channels == 3 else (0, 1, 2, 3)
    stored = pictures.clip(0, 255).astype(np.uint8).transpose(shape)
    np.savez(path, x=stored if channels == 3 else stored[:, 0], y=kind)
    return str(path)


def circles(folder: Path) -> str:
    return trained("circles", *SHORT, "n_init=1")


def spirals_with_restarts(folder: Path) -> str:
    return trained("spirals", *SHORT, "n_init=2", "good_enough=0")


def live_walks(folder: Path) -> str:
    return trained("moons", *SHORT, "n_init=1", "method=no-nf-no-train-1", "walk.refresh=7")


def two_encoders(folder: Path) -> str:
    return trained("moons", *SHORT, "n_init=1", "method=no-nf-2-enc")


def swav(folder: Path) -> str:
    return trained("moons", *SHORT, "n_init=2", "method=swav")


def literal(folder: Path) -> str:
    return trained("circles-paper", *SHORT, "stage1.batch_size=50", "stage2.batch_size=50", "sampling.chains=50")


def digits(folder: Path) -> str:
    return trained("digits-energy", *CONVOLUTIONS)


def digits_walked(folder: Path) -> str:
    return trained(
        "digits-energy", *CONVOLUTIONS, "walk.composed=true", "walk.refresh=1", "walk.relax=2", "walk.steps=2"
    )


def digits_barlow(folder: Path) -> str:
    return trained("digits-energy", *CONVOLUTIONS, "method=barlow")


def digits_addition_with_alignment(folder: Path) -> str:
    changes = ["data.triplets=60", "stage2.iterations=30", "stage2.batch_size=60", "log_every=5", "guard.every=10"]
    return trained("digits-addition", *changes, "model.width=8", "constraint.restarts=20")


def supervised(folder: Path) -> str:
    changes = ["data.triplets=60", "stage2.iterations=20", "stage2.batch_size=60", "log_every=5", "method=supervised"]
    return trained("digits-addition", *changes, "model.width=8")


def logic_alone(folder: Path) -> str:
    changes = ["data.triplets=60", "stage2.iterations=20", "stage2.batch_size=60", "log_every=5", "method=logic-alone"]
    return trained("digits-addition", *changes, "model.width=8")


def mnist_with_merging(folder: Path) -> str:
    source = ["data.name=images", f"data.path={images(folder, 1, 28)}"]
    return trained("mnist-energy", *CONVOLUTIONS, *source, "model.finer=20")


def cifar10_paper_steps(folder: Path) -> str:
    source = ["data.name=images", f"data.path={images(folder, 3, 32)}", "data.channels=3"]
    small = ["model.width=8", "model.projector=16", "model.embedding=8", "sampling.buffer=64", "sampling.chains=8"]
    steps = ["stage1.iterations=2", "stage2.iterations=3", "stage1.batch_size=8", "stage2.batch_size=8", "log_every=1"]
    return trained("cifar10-paper", *source, *small, *steps, "sampling.steps=3", "walk.steps=2")


def guarded_hostile_run(folder: Path) -> str:
    fast = ["stage1.learning_rate=0.3", "stage2.learning_rate=0.09", "sampling.step_size=3.2"]
    raw = ["sampling.metropolis=false", "sampling.clamp=false", "sampling.teleports=0", "guard.gap=100"]
    prepared = run("circles", *SHORT, *fast, *raw, "n_init=1")
    train(prepared)
    records = prepared.trainer.records  # type: ignore[attr-defined]
    assert any(record.get("event") == "guard" for record in records), "the guard was not needed: pin a harsher run"
    return of_run(prepared)


def killed_and_resumed(folder: Path) -> str:
    """Stopped in the middle of each stage, each time taken up by a new process's objects; the same as in one go."""
    settings = [*SHORT, "n_init=2", "good_enough=0"]
    directory, records = RunDirectory.create(folder / "run"), []
    for _ in range(40):
        prepared = run("spirals", *settings)
        state = directory.load_checkpoint()
        if state is not None:
            prepared.trainer.load_state_dict(state)
            records = records[: state["logged"]]
        prepared.trainer.on_log = records.append

        def save(state: dict, records: list = records) -> None:
            directory.save_checkpoint({**state, "logged": len(records)})

        looks = iter(range(4))
        try:
            train(prepared, save, stop=lambda looks=looks: next(looks, None) is None)
        except Stopped:
            continue
        break
    prepared.trainer.records = records  # type: ignore[attr-defined]
    return of_run(prepared)


def two_processes(folder: Path) -> str:
    words = [*SHORT, "n_init=2", "good_enough=0", "sampling.buffer=501"]
    command = [sys.executable, "-m", "gedi", "run", "moons", "--out", str(folder / "two"), "--devices", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, *(word for change in words for word in ("--set", change))],
        env=environment, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    directory = RunDirectory.open(folder / "two")
    return _digest(directory.metrics(), load_file(directory.path / "model" / "model.safetensors").values())


PINNED: dict[str, Callable[[Path], str]] = {
    f.__name__: f
    for f in (
        circles, spirals_with_restarts, live_walks, two_encoders, swav, literal, digits, digits_walked, digits_barlow,
        digits_addition_with_alignment, supervised, logic_alone, mnist_with_merging, cifar10_paper_steps,
        guarded_hostile_run, killed_and_resumed, two_processes,
    )
}  # fmt: skip


def _digest(records: Iterable[dict], tensors: Iterable[Tensor]) -> str:
    """Of the figures of every record in order, and of the tensors in any order."""
    whole = hashlib.blake2b(digest_size=12)
    for record in records:
        whole.update(json.dumps([v for v in record.values() if not isinstance(v, str | dict)]).encode())
    each = [hashlib.blake2b(x.detach().cpu().contiguous().numpy().tobytes()).digest() for x in tensors]
    whole.update(b"".join(sorted(each)))
    return whole.hexdigest()


def main() -> int:
    """Compare or record."""
    torch.set_num_threads(1)
    found = {"arithmetic": arithmetic(), "runs": {}}
    known = json.loads(RECORD.read_text()) if RECORD.is_file() else found
    wrong = 0
    for name, make in PINNED.items():
        with tempfile.TemporaryDirectory() as folder:
            found["runs"][name] = make(Path(folder))
        same = found["runs"][name] == known["runs"].get(name)
        wrong += not same
        print(f"{'same' if same else 'DIFFERS':<8} {name}", flush=True)
    if "--write" in sys.argv:
        RECORD.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if "--write" in sys.argv else wrong


if __name__ == "__main__":
    sys.exit(main())
