"""Training steps against their own bare passes, and against the plain eager form."""

from collections.abc import Iterator

import torch

from gedi.bench.bare import bare_passes
from gedi.bench.findings import Figure, Finding, LeftOut, cost, speedup
from gedi.bench.plain_step import PlainStep
from gedi.bench.timing import Effort, in_turns
from gedi.bench.workloads import addition, images, toy
from gedi.building import build_model
from gedi.config import override, parse
from gedi.fitting import prepare, train
from gedi.objectives.objective import Seen
from gedi.presets import preset
from gedi.random import Streams
from gedi.types import Clustered

_FASTER = 3.0  # times, what a toy step is meant to gain over the plain form
_OVERHEAD = {32: 1.5, 128: 1.15}  # of an image step over its bare passes, by F


def steps(effort: Effort) -> Iterator[Finding]:
    """Toy, addition and image steps."""
    yield from _toy(effort)
    yield from _tries(effort)
    yield from _addition(effort)
    for width, most in _OVERHEAD.items():
        if effort.small and width > 32:
            yield LeftOut(f"image step, F = {width}", "takes minutes: run without --quick")
            continue
        # the preset's 64 would take a minute a step where F is large; at 16, what a step adds only weighs more
        batch = 16 if effort.small or width > 32 else 64
        work = images(width, f"stage2.batch_size={batch}", f"density.chains={batch}")
        name = f"image step, F = {width}, batch {batch}"
        turns = in_turns({"step": work.step, "bare": bare_passes(work)}, effort)
        yield cost(turns, name, ("step", "step"), ("bare passes", "bare"), at_most=most)


def _toy(effort: Effort) -> Iterator[Finding]:
    """Both stages; ours walks every training point once a stage, the plain form every batch in every step."""
    first, second = toy("stage1"), toy("stage2")
    config = parse(preset("circles"))
    plain = PlainStep(build_model(config, (2,), 2, Streams(0)), config, first.prepared.box)
    x = first.prepared.data.train[: config.stage1.batch_size]
    walk, energy = second.leg.stage.walk, second.prepared.trainer.model.energy.snapshot()
    generator = torch.Generator().manual_seed(0)
    assert walk is not None
    turns = in_turns(
        {
            "stage 1": first.step,
            "stage 1, bare": bare_passes(first),
            "stage 1, plain": lambda: plain.stage1(x),
            "stage 2": second.step,
            "stage 2, bare": bare_passes(second),
            "stage 2, plain": lambda: plain.stage2(x, walked=x),
            "walk": lambda: walk(energy, x, generator),
            "walk, plain": lambda: plain.walk(x),
            "all walks": lambda: walk(energy, second.prepared.data.train[:], generator),
        },
        effort,
    )
    for stage in ("stage 1", "stage 2"):
        yield cost(turns, f"toy step, {stage}", ("step", stage), ("bare passes", f"{stage}, bare"))
    label = "plain eager form"
    yield speedup(turns, "toy step, stage 1", (label, "stage 1, plain"), "stage 1", at_least=_FASTER)
    yield speedup(turns, "toy step, stage 2, walks given", (label, "stage 2, plain"), "stage 2", at_least=_FASTER)
    yield speedup(turns, "toy walk of one batch", (label, "walk, plain"), "walk")
    n1, n2 = config.stage1.iterations, config.stage2.iterations
    yield speedup(
        turns,
        "toy step, stage 2, walks included",
        (label, {"stage 2, plain": 1, "walk, plain": 1}),
        {"stage 2": 1, "all walks": 1 / n2},
        at_least=_FASTER,
    )
    yield speedup(
        turns,
        "toy run, both stages",
        (label, {"stage 1, plain": n1, "stage 2, plain": n2, "walk, plain": n2}),
        {"stage 1": n1, "stage 2": n2, "all walks": 1},
    )


def _tries(effort: Effort) -> Iterator[Finding]:
    """Three tries share stage 1; a tenth of the recipe's length, or a hundredth."""
    tenths = 1 if effort.small else 10
    short = [f"stage1.iterations={15 * tenths}", f"stage2.iterations={14 * tenths}", f"walk.steps={2 * tenths}"]

    def whole(tries: int) -> None:
        settings = [*short, f"n_init={tries}", "good_enough=0", "log_every=1000000"]
        train(prepare(parse(override(preset("circles"), settings))))

    turns = in_turns({"three": lambda: whole(3), "one": lambda: whole(1)}, effort)
    yield cost(turns, "toy run with three tries", ("three tries", "three"), ("one try", "one"))


def _addition(effort: Effort) -> Iterator[Finding]:
    work = addition()
    stage = work.leg.stage
    n = stage.batch_size
    logits = torch.randn(2, n, 10, generator=torch.Generator().manual_seed(0))
    term = stage.terms["constraint"]

    def constraint() -> None:
        data, view = (Clustered(part, part, part) for part in logits.clone().requires_grad_())
        term(Seen(data, {"view": view}, 1.0, n)).backward()  # type: ignore[no-untyped-call]

    turns = in_turns({"step": work.step, "bare": bare_passes(work), "constraint": constraint}, effort)
    yield cost(turns, "addition step", ("step", "step"), ("bare passes", "bare"))
    share = turns.compare("constraint", "step").value
    yield Figure("addition step: share of the rule's circuit, forward and backward", 100 * share, "%")
