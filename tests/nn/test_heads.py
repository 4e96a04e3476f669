import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from gedi.nn import Projector, Prototypes


@pytest.mark.parametrize("training", [True, False])
def test_every_embedding_lies_on_the_unit_sphere(training):
    projector = Projector(3, 8, 5).train(training)
    w = projector(10 * torch.randn(32, 3))
    torch.testing.assert_close(w.norm(dim=1), torch.ones(32))


def test_in_training_the_embedding_ignores_a_common_shift_of_the_latents():
    projector = Projector(3, 8, 5).double()
    xi = torch.randn(32, 3, dtype=torch.float64)
    shift = torch.tensor([5.0, -3.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(projector(xi), projector(xi + shift))


def test_in_evaluation_an_embedding_does_not_depend_on_the_rest_of_its_batch():
    projector = Projector(3, 8, 5)
    projector(torch.randn(64, 3))  # running statistics that are not the initial ones
    projector.eval()
    xi = torch.randn(6, 3)
    torch.testing.assert_close(projector(xi), torch.cat([projector(row[None]) for row in xi]))


def test_in_training_both_layers_are_standardised_over_the_batch():
    projector = Projector(3, 8, 5)
    xi = 7 * torch.randn(256, 3) + 2
    hidden = projector.net[1](projector.net[0](xi))
    output = projector.net(xi)
    for layer in (hidden, output):
        torch.testing.assert_close(layer.mean(0), torch.zeros(layer.shape[1]), rtol=0, atol=1e-5)
        torch.testing.assert_close(layer.var(0, correction=0), torch.ones(layer.shape[1]), rtol=1e-2, atol=0)


def test_the_same_seed_gives_the_same_heads(seeded):
    for make in (lambda g: Projector(3, 8, 5, generator=g), lambda g: Prototypes(5, 4, generator=g)):
        first, again, other = (torch.cat([p.flatten() for p in make(seeded(s)).parameters()]) for s in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


@given(st.integers(1, 12), st.data())
def test_prototypes_start_orthogonal_where_the_dimension_allows(inputs, data):
    clusters = data.draw(st.integers(1, inputs))
    weight = Prototypes(inputs, clusters).weight
    assert weight.shape == (clusters, inputs)
    torch.testing.assert_close(weight @ weight.T, torch.eye(clusters), rtol=0, atol=1e-5)


def test_more_prototypes_than_dimensions_start_as_different_unit_vectors():
    weight = Prototypes(4, 10).weight
    cosines = weight @ weight.T
    torch.testing.assert_close(cosines.diagonal(), torch.ones(10))
    assert (cosines - 2 * torch.eye(10)).max() < 1 - 1e-4


@given(st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4))
def test_logits_do_not_depend_on_the_norms_of_the_prototypes(norms):
    prototypes = Prototypes(6, 4).double()
    w = F.normalize(torch.randn(10, 6, dtype=torch.float64), dim=1)
    before = prototypes(w)
    with torch.no_grad():
        prototypes.weight *= torch.tensor(norms, dtype=torch.float64)[:, None]
    torch.testing.assert_close(prototypes(w), before)


def test_the_gradient_never_stretches_a_prototype():
    prototypes = Prototypes(6, 4).double()
    prototypes(torch.randn(10, 6, dtype=torch.float64)).square().sum().backward()
    along = (prototypes.weight.grad * prototypes.weight).sum(1)
    assert prototypes.weight.grad.norm() > 1
    torch.testing.assert_close(along, torch.zeros_like(along), rtol=0, atol=1e-10)


def test_logits_are_cosines_over_the_temperature():
    prototypes = Prototypes(6, 4, temperature=0.2)
    with torch.no_grad():
        prototypes.weight *= 3
    w = F.normalize(torch.randn(10, 6), dim=1)
    cosines = F.cosine_similarity(w[:, None], prototypes.weight[None], dim=2)
    torch.testing.assert_close(prototypes(w), cosines / 0.2)
    own = prototypes(F.normalize(prototypes.weight, dim=1)).diagonal()
    torch.testing.assert_close(own, torch.full((4,), 5.0))  # a prototype's own logit is the largest: 1 / tau
