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
    "denoising": (partial(losses.denoising, sigma=0.3), [(N, 2), (N, 2)]),
    "energy_penalty": (losses.energy_penalty, [(N,), (N,)]),
    "generative": (losses.generative, [(N,), (N,)]),
    "negative_free": (partial(losses.negative_free, ridge=0.1), [(N, 4), (N, 3), (N, 3)]),
    "negative_free (fewer points than dimensions)": (losses.negative_free, [(N, 9), (N, 3), (N, 3)]),
    # a large epsilon makes the assignments constant: autograd, rightly, takes them as given
    "swapped_prediction": (partial(losses.swapped_prediction, epsilon=1e9), [(N, 3), (N, 3)]),
    "swapped_prediction (sharp)": (losses.swapped_prediction, [(N, 3), (N, 3)]),
}
DIFFERENTIABLE = [name for name in CASES if name != "swapped_prediction (sharp)"]


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
