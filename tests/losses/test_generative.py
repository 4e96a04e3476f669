import math

import pytest
import torch

from gedi.losses import energy_penalty, generative

COUNTS = torch.tensor([1, 2, 5, 8])  # the model's probabilities are COUNTS / 16, so 16 samples are exact
DATA = torch.tensor([0, 0, 1, 3, 3, 3, 2])


def table():
    """Energies over four states whose probabilities are COUNTS / 16, with an arbitrary level."""
    return (-COUNTS.double().log() + 0.7).requires_grad_(True)


def exact_samples():
    return torch.repeat_interleave(torch.arange(4), COUNTS)


def negative_log_likelihood(energies):
    return energies[DATA].mean() + torch.logsumexp(-energies, dim=0)


def test_its_gradient_is_that_of_the_negative_log_likelihood():
    energies = table()
    (ours,) = torch.autograd.grad(generative(energies[DATA], energies[exact_samples()]), energies)
    (exact,) = torch.autograd.grad(negative_log_likelihood(energies), energies)
    torch.testing.assert_close(ours, exact, rtol=1e-12, atol=1e-12)
    assert exact.abs().max() > 0.1


def test_its_gradient_in_shared_parameters_is_that_of_the_likelihood():
    # E(x) = -theta . f(x), where theta is such that the probabilities are COUNTS / 16 again
    features = torch.randn(4, 4, dtype=torch.float64)
    theta = torch.linalg.solve(features, COUNTS.double().log()).requires_grad_(True)
    energies = -(features @ theta)
    (ours,) = torch.autograd.grad(generative(energies[DATA], energies[exact_samples()]), theta, retain_graph=True)
    # the textbook form: model expectation of the features minus that of the data
    moments = (COUNTS.double() / 16) @ features - features[DATA].mean(0)
    torch.testing.assert_close(ours, moments)
    (exact,) = torch.autograd.grad(negative_log_likelihood(energies), theta)
    torch.testing.assert_close(ours, exact)


def test_a_step_down_raises_the_likelihood_of_the_data():
    energies = table()
    (gradient,) = torch.autograd.grad(generative(energies[DATA], energies[exact_samples()]), energies)
    before = negative_log_likelihood(energies)
    assert negative_log_likelihood(energies - 0.1 * gradient) < before - 0.005
    assert negative_log_likelihood(energies + 0.1 * gradient) > before  # so the sign is not an accident


def test_the_gradient_vanishes_where_the_model_is_the_data():
    energies = table()
    loss = generative(energies[exact_samples()], energies[exact_samples()])
    (gradient,) = torch.autograd.grad(loss, energies)
    torch.testing.assert_close(gradient, torch.zeros(4, dtype=torch.float64), rtol=0, atol=1e-12)


def test_descent_with_exact_expectations_reaches_the_data_frequencies():
    energies = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([energies], lr=1.0)
    for _ in range(300):
        p = torch.softmax(-energies.detach(), dim=0)
        optimiser.zero_grad()
        # m * p_k copies of each state, as one weighted sample: mean(m p_k E_k) over the m states
        generative(energies[DATA], 4 * p * energies).backward()
        optimiser.step()
    frequencies = torch.bincount(DATA, minlength=4) / len(DATA)
    torch.testing.assert_close(torch.softmax(-energies, dim=0), frequencies.double(), rtol=0, atol=1e-3)


def test_the_level_of_the_energy_does_not_matter_and_its_penalty_sees_it():
    data, samples = torch.randn(6).double(), torch.randn(9).double()
    assert math.isclose(generative(data + 3, samples + 3).item(), generative(data, samples).item())
    assert energy_penalty(data + 30, samples + 30) > energy_penalty(data, samples) + 1000


def test_data_and_samples_may_differ_in_number_and_order():
    data, samples = torch.randn(6), torch.randn(9)
    torch.testing.assert_close(generative(data.flip(0), samples[torch.randperm(9)]), generative(data, samples))
    torch.testing.assert_close(generative(data, samples.repeat(3)), generative(data, samples))


@pytest.mark.parametrize("level", [-2.0, 0.0, 1.5])
def test_the_penalty_is_twice_the_square_of_a_constant_level(level):
    flat = torch.full((5,), level)
    assert math.isclose(energy_penalty(flat, flat).item(), 2 * level**2)


def test_the_penalty_pulls_every_energy_toward_zero():
    energy = torch.tensor([-3.0, 2.0, 0.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(energy_penalty(energy, energy.detach()), energy)
    torch.testing.assert_close(gradient, 2 * energy.detach() / 3)
