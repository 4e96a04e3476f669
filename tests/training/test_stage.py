"""What a stage says of itself: the learning rate, the looks it needs, and what tells its tries apart."""

import pytest
import torch

from gedi.building import build_stages, cluster_loss_range, context_of
from gedi.config import override, parse
from gedi.densities.density import Place
from gedi.objectives.swapped import perfect_cluster_loss
from gedi.presets import preset
from gedi.sampling import Box
from gedi.training import Optimiser
from gedi.training.stage import View, radial_energy

BOX = Box(-torch.ones(2), torch.ones(2))


def stages_of(*settings):
    config = parse(override(preset("moons"), settings))
    return build_stages(config, config.density.bind(Place(BOX, BOX)), context_of(config, 2, None, labelled=True))


def test_the_learning_rate_warms_up_and_falls_to_its_share():
    optimiser = Optimiser(1.0, (0.9, 0.999), warmup=10, final=0.02)
    rates = [optimiser.rate(i, 1000) for i in range(1000)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1, abs=0.01)
    assert rates[-1] == pytest.approx(0.02, abs=0.001)
    assert Optimiser(1.0, (0.9, 0.999), 0, 1.0).rate(900, 1000) == 1.0


def test_a_stage_needs_the_looks_of_its_terms_and_is_told_apart_by_those_that_shape_clusters():
    first, second = stages_of()
    assert (first.looks, second.looks) == (frozenset(), {"view", "walk"})
    assert (first.clusters_from, second.clusters_from) == ((), ("swapped", "swapped_walk"))
    assert (first.walk is None, second.walk is None) == (True, False)
    assert not second.looks_at_labels
    assert stages_of("stage2.terms.supervised.weight=1")[1].looks_at_labels


def test_weights_are_the_densitys_in_its_own_order_and_then_the_terms_in_theirs():
    settings = (
        "stage2.density.penalty=0.5",
        "stage2.density.denoising=0",
        "stage2.terms.balance={weight: 2, ramp: 0.5}",
    )
    (_, stage) = stages_of(*settings)
    assert list(stage.weights(0.25).items()) == [
        ("generative", 0.03), ("penalty", 0.5), ("negative_free", 2.5e-6), ("swapped", 1.0), ("swapped_walk", 1.0),
        ("balance", 1.0),
    ]  # fmt: skip


def test_points_are_shared_out_only_once_a_term_that_does_so_is_in_force():
    without = ("stage2.terms.swapped=null", "stage2.terms.swapped_walk=null", "stage2.terms.agreement.weight=1")
    _, agreeing = stages_of(*without)
    assert not agreeing.shares_out(1.0)
    _, balanced = stages_of(*without, "stage2.terms.balance={weight: 1, start: 0.5}")
    assert [balanced.shares_out(progress) for progress in (0.0, 0.4, 0.5, 1.0)] == [False, False, True, True]


def test_the_range_of_the_selection_loss_is_known_where_all_that_shape_clusters_know_theirs_and_one_walks():
    perfect, ignorant = cluster_loss_range(stages_of())
    assert perfect == pytest.approx(2 * perfect_cluster_loss(2, 8, 0.2))
    assert ignorant == pytest.approx(2 * torch.tensor(2.0).log().item())
    assert cluster_loss_range(stages_of("stage2.terms.swapped_walk=null")) is None
    assert cluster_loss_range(stages_of("stage2.terms.balance.weight=1")) is None


def test_the_control_of_a_walk_has_minus_x_for_its_score():
    x = torch.randn(5, 2, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(radial_energy(x).sum(), x)
    torch.testing.assert_close(-gradient, -x)


def test_a_view_is_noise_alone_before_its_start(seeded):
    view = View(0.5, lambda x, generator: x + 100, both=True, start=0.4)
    x = torch.zeros(50, 2)
    early, late = (view.at(progress)(x, seeded(0)) for progress in (0.39, 0.4))
    torch.testing.assert_close(late - 100, early, rtol=0, atol=1e-4)
    assert early.std() == pytest.approx(0.5, rel=0.2)
    assert view.at(0.0).both
    assert view.at(0.9) is view
