"""Two processes on halves of a batch have the gradients of one on the whole, for every term."""

import pytest
import ranks
import torch

from gedi.config import override, parse
from gedi.densities.density import Density
from gedi.objectives.objective import Objective
from gedi.parts import kinds
from gedi.presets import preset
from gedi.processes import Processes
from gedi.training.step import JointPass


@pytest.fixture(scope="module", params=["ddp", "fsdp", "ddp, two encoders"])
def both(request, two):
    strategy, _, second = request.param.partition(", ")
    stage, model = ranks.stage_and_model(bool(second), Processes())
    alone = ranks.gradients_of_terms(JointPass(model), model, stage, ranks.whole_batch(bool(second)))
    return alone, two(ranks.compare_gradients, strategy, bool(second))


@pytest.mark.parametrize("term", [*ranks.TERMS, "sum"])
def test_value_and_gradient_are_those_of_one_process_on_the_joined_batch(both, term):
    alone, found = both
    for one in found:
        torch.testing.assert_close(one[term]["value"], alone[term]["value"], rtol=1e-10, atol=1e-10)
        for name, expected in alone[term]["gradients"].items():
            given = one[term]["gradients"][name]
            if expected is None:
                assert given is None or not given.any(), name
            else:
                torch.testing.assert_close(given, expected, rtol=1e-8, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}")
    assert any(x is not None and x.abs().max() > 1e-6 for x in alone[term]["gradients"].values())


def test_batch_norm_keeps_the_statistics_of_the_whole_batch(both):
    alone, found = both
    assert any(name.endswith("running_var") for name in alone["buffers"])
    for one in found:
        for name, expected in alone["buffers"].items():
            torch.testing.assert_close(one["buffers"][name], expected, rtol=1e-12, atol=1e-12)


def test_processes_agree_and_a_failure_of_the_first_ends_all(two):
    first, second = two(ranks.collectives)
    assert first["outcome"] == "ZeroDivisionError"
    assert second["outcome"] == "EndedElsewhere"


def test_every_kind_of_term_is_compared():
    stage, _ = ranks.stage_and_model(False, Processes())
    assert {term.kind for term in stage.terms.values()} == set(kinds("gedi.objectives", Objective))
    assert set(stage.density_weights) == set(stage.density.terms)


def test_every_kind_of_density_that_learns_is_compared():
    compared = {parse(override(preset("moons"), changes)).density.kind for changes in ranks.DENSITIES.values()}
    assert compared | {"energy", "kernel", "none"} == set(kinds("gedi.densities", Density))


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_density_learns_from_the_points_of_all(two, strategy):
    both = two(ranks.compare_densities, strategy)
    for density in ranks.DENSITIES:
        stage, model = ranks.density_stage(density, Processes())
        batch = ranks.density_batch(model, stage, Processes())
        alone = ranks.density_gradient(JointPass(model), model, stage, batch)
        for one in both:
            torch.testing.assert_close(one[density]["value"], alone["value"], rtol=1e-10, atol=1e-10)
            for name, expected in alone["gradients"].items():
                torch.testing.assert_close(one[density]["gradients"][name], expected, rtol=1e-8, atol=1e-8)
        assert max(x.abs().max() for x in alone["gradients"].values()) > 1e-3
