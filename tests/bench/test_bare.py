"""The bare passes are a step's own: as many points through the encoder, and nothing forgotten."""

import pytest

from gedi.bench.bare import bare_passes
from gedi.bench.workloads import addition, images, toy

SMALL = ("stage2.batch_size=8", "density.chains=4", "density.steps=2", "walk.steps=3")


def rows_of(work, function):
    """How many points go through the encoder, forward."""
    rows = []
    encoder = work.prepared.trainer.model.encoder
    hook = encoder.register_forward_hook(lambda module, args, latent: rows.append(len(latent)))
    function()
    hook.remove()
    return sum(rows)


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda: images(8, *SMALL), 2 * 4 + 3 * 8 + 3 * 8 + 2 * 4),  # chains, walks, data and views, contrast
        (lambda: addition("stage2.batch_size=12"), 2 * 12),
    ],
)
def test_bare_passes_put_as_many_points_through_the_network_as_a_step(make, rows):
    work = make()
    assert rows_of(work, bare_passes(work)) == rows
    assert rows_of(work, work.step) == rows


@pytest.mark.parametrize("stage", ["stage1", "stage2"])
def test_bare_passes_reach_the_parameters_that_a_step_reaches(stage):
    work = toy(stage, "data.n_train=200", "walk.steps=2")
    model = work.prepared.trainer.model

    def reached(function):
        model.zero_grad()
        function()
        return {name for name, p in model.named_parameters() if p.grad is not None}

    wanted = reached(work.step)
    assert reached(bare_passes(work)) == wanted
    assert ("prototypes.weight" in wanted) == (stage == "stage2")
