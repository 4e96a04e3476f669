"""What every loss that ``gedi.losses`` exports must do; the module itself is the registry."""

from functools import partial

import pytest
import torch

from gedi import losses

#: Exported, but not a scalar to minimise.
NOT_LOSSES = {"log_sinkhorn"}

N = 6  # rows of every argument

#: The loss as called, and the shape of each tensor argument.
CASES = {
    "agreement": (losses.agreement, [(N, 3), (N, 3)]),
    "balance": (losses.balance, [(N, 3)]),
    "balance (with a prior)": (
        partial(losses.balance, log_prior=torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()),
        [(N, 3)],
    ),
    "barlow_twins": (losses.barlow_twins, [(N, 4), (N, 4)]),
    "barlow_twins (fewer points than dimensions)": (losses.barlow_twins, [(N, 9), (N, 9)]),
    "contrastive": (losses.contrastive, [(N, 4), (N, 4)]),
    "contrastive (distances)": (partial(losses.contrastive, similarity="distance", temperature=1.0), [(N, 4), (N, 4)]),
    "cor_info_max": (partial(losses.cor_info_max, ridge=0.1), [(N, 4), (N, 4)]),
    "cor_info_max (fewer points than dimensions)": (losses.cor_info_max, [(N, 9), (N, 9)]),
    "cpc": (losses.cpc, [(N, 4), (N, 4)]),
    "deep_cluster": (lambda s: losses.deep_cluster(s, (s.detach()[:, 0] > 0).long()), [(N, 3)]),
    "denoising": (partial(losses.denoising, sigma=0.3), [(N, 2), (N, 2)]),
    "energy_penalty": (losses.energy_penalty, [(N,), (N,)]),
    "generative": (losses.generative, [(N,), (N,)]),
    "k_shot (one view)": (partial(losses.k_shot, temperature=0.5), [(N, 4), (N, 4)]),
    "k_shot (three views)": (partial(losses.k_shot, temperature=0.5), [(N, 4)] * 4),
    "mec": (losses.mec, [(N, 4), (N, 4)]),
    "mec (fewer points than dimensions)": (losses.mec, [(N, 9), (N, 9)]),
    "negative_free": (partial(losses.negative_free, ridge=0.1), [(N, 4), (N, 3), (N, 3)]),
    "negative_free (fewer points than dimensions)": (losses.negative_free, [(N, 9), (N, 3), (N, 3)]),
    "nt_xent": (losses.nt_xent, [(N, 4), (N, 4)]),
    "proto_cpc": (partial(losses.proto_cpc, sharpening=0.0), [(N, 3), (N, 3)]),
    "proto_cpc (sharp)": (losses.proto_cpc, [(N, 3), (N, 3)]),
    # a large epsilon makes the assignments constant: autograd, rightly, takes them as given
    "swapped_prediction": (partial(losses.swapped_prediction, epsilon=1e9), [(N, 3), (N, 3)]),
    "swapped_prediction (sharp)": (losses.swapped_prediction, [(N, 3), (N, 3)]),
    "vicreg": (losses.vicreg, [(N, 4), (N, 4)]),
    "vicreg (fewer points than dimensions)": (losses.vicreg, [(N, 9), (N, 9)]),
    "w_mse": (losses.w_mse, [(N, 4), (N, 4)]),
    "w_mse (fewer points than dimensions)": (partial(losses.w_mse, ridge=0.1), [(N, 9), (N, 9)]),
}
DIFFERENTIABLE = [name for name in CASES if not name.endswith("(sharp)")]  # those take their targets as given


def case(name, dtype=torch.float64, rows=None):
    loss, shapes = CASES[name]
    return loss, [torch.randn(rows or shape[0], *shape[1:], dtype=dtype) for shape in shapes]


def test_every_exported_loss_is_under_contract():
    covered = {name.split(" ")[0] for name in CASES}
    assert covered | NOT_LOSSES == set(losses.__all__), "give each new loss a line in CASES"
    assert all(callable(getattr(losses, name)) for name in losses.__all__)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_one_finite_number_of_the_precision_it_was_given(name, dtype):
    loss, arguments = case(name, dtype)
    value = loss(*arguments)
    assert value.shape == ()
    assert value.dtype == dtype
    assert value.isfinite()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_its_gradient_is_right(name):
    loss, arguments = case(name)
    assert torch.autograd.gradcheck(loss, [a.requires_grad_(True) for a in arguments])


@pytest.mark.parametrize("name", CASES)
def test_its_gradient_is_finite_and_not_zero(name):
    loss, arguments = case(name, torch.float32)
    arguments = [a.requires_grad_(True) for a in arguments]
    for gradient in torch.autograd.grad(loss(*arguments), arguments):
        assert gradient.isfinite().all()
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_the_batch_does_not_matter(name):
    loss, arguments = case(name)
    order = torch.randperm(N)
    torch.testing.assert_close(loss(*(a[order] for a in arguments)), loss(*arguments), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_it_leaves_its_arguments_as_they_were(name):
    loss, arguments = case(name)
    before = [a.clone() for a in arguments]
    loss(*arguments)
    assert all(torch.equal(a, b) for a, b in zip(arguments, before, strict=True))


#: Losses that keep points from becoming one. The negative-free term does too, at a scale of its own: see its tests.
AGAINST_COLLAPSE = (
    "barlow_twins", "contrastive", "cor_info_max", "k_shot", "mec", "nt_xent", "vicreg",
)  # fmt: skip


@pytest.mark.parametrize("name", AGAINST_COLLAPSE)
def test_points_that_have_become_one_cost_more_than_points_that_are_spread(name):
    loss = getattr(losses, name)
    spread = torch.nn.functional.normalize(torch.randn(64, 4, dtype=torch.float64), dim=1) * 2  # variance 1
    one = spread[:1].repeat(64, 1) + 1e-4 * torch.randn(64, 4, dtype=torch.float64)
    costs = [loss(points, points + 1e-4 * torch.randn(64, 4, dtype=torch.float64)) for points in (one, spread)]
    assert costs[0] > costs[1]


#: Those that give every cluster points: all points in one cluster cost more than equal shares.
SHARING = ("balance", "proto_cpc", "swapped_prediction")


@pytest.mark.parametrize("name", SHARING)
def test_one_cluster_for_all_costs_more_than_equal_shares(name):
    loss = getattr(losses, name)
    shared = 5 * torch.eye(4, dtype=torch.float64).repeat(16, 1)
    one = shared[:1].repeat(64, 1)
    given = 1 if name == "balance" else 2
    assert loss(*[one] * given) > loss(*[shared] * given) + 0.5


@pytest.mark.parametrize("name", CASES)
def test_it_draws_no_random_numbers(name):
    loss, arguments = case(name)
    assert torch.equal(loss(*arguments), loss(*arguments))


@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_one_is_a_batch(name):
    loss, arguments = case(name, rows=1)
    assert loss(*arguments).isfinite()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", CASES)
def test_in_half_precision_it_is_what_double_precision_says(name, dtype):
    loss, arguments = case(name, dtype, rows=64)
    exact = [a.double().requires_grad_() for a in arguments]
    given = [a.requires_grad_() for a in arguments]
    with torch.autocast("cpu", torch.bfloat16):
        value = loss(*given)
    gradients = torch.autograd.grad(value, given)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), loss(*exact), rtol=1e-5, atol=1e-5)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.01, "atol": 1e-3}  # itself rounded
    for gradient, true in zip(gradients, torch.autograd.grad(loss(*exact), exact), strict=True):
        torch.testing.assert_close(gradient.double(), true, **close)


def test_balanced_assignments_are_those_of_double_precision_whatever_the_autocast():
    scores = torch.randn(64, 5).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        log_q = losses.log_sinkhorn(scores)
    torch.testing.assert_close(log_q.double(), losses.log_sinkhorn(scores.double()), rtol=1e-5, atol=1e-4)
