"""The small convolutional encoder: shapes, size, where its weights come from, and the gradients that energies need."""

import pytest
import torch

from gedi.nn import ConvEncoder
from gedi.nn.model import Energy


def flat(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("side", [4, 7, 8, 14, 16, 28, 32, 64])
@pytest.mark.parametrize("channels", [1, 3])
def test_any_small_square_image_becomes_one_latent(side, channels):
    encoder = ConvEncoder((channels, side, side), 4, 6)
    assert encoder(torch.randn(5, channels, side, side)).shape == (5, 6)


@pytest.mark.parametrize(("side", "last"), [(4, 4), (8, 4), (16, 4), (28, 4), (32, 4), (64, 4)])
def test_the_side_is_halved_until_it_is_at_most_four(side, last):
    encoder = ConvEncoder((1, side, side), 4, 6)
    assert encoder.last.in_features == 4 * 4 * last * last


def test_the_encoder_of_the_recipe_has_so_many_weights():
    encoder = ConvEncoder((1, 28, 28), 16, 64)
    convolutions = (16 * 1 * 25 + 16) + (32 * 16 * 9 + 32) + (32 * 32 * 9 + 32) + (64 * 32 * 9 + 64)
    assert len(flat(encoder)) == convolutions + (64 * (64 * 4 * 4) + 64) == 98_400


@pytest.mark.parametrize("shape", [(1, 8, 9), (1, 3, 3), (3, 28, 32)])
def test_images_that_are_not_square_or_too_small_are_refused(shape):
    with pytest.raises(ValueError, match="square with a side of at least 4"):
        ConvEncoder(shape, 4, 6)


def test_the_weights_follow_from_the_generator_alone(seeded):
    first = flat(ConvEncoder((1, 8, 8), 4, 6, generator=seeded(1)))
    torch.manual_seed(99)
    again, other = (flat(ConvEncoder((1, 8, 8), 4, 6, generator=seeded(s))) for s in (1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    # none was left as PyTorch drew it
    for a, b in zip(
        ConvEncoder((1, 8, 8), 4, 6, generator=seeded(1)).parameters(),
        ConvEncoder((1, 8, 8), 4, 6, generator=seeded(2)).parameters(),
        strict=True,
    ):
        assert not torch.equal(a, b)


def test_the_weights_have_pytorchs_own_spread(seeded):
    encoder = ConvEncoder((1, 28, 28), 16, 64, generator=seeded(0))
    for layer, fan in ((encoder.net[0], 25), (encoder.net[2], 16 * 9), (encoder.net[7], 32 * 9), (encoder.last, 1024)):
        bound = fan**-0.5
        assert 0.95 * bound < layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_an_image_does_not_depend_on_its_neighbours():
    encoder = ConvEncoder((1, 8, 8), 4, 6).double()
    x = torch.randn(6, 1, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(encoder(x), torch.cat([encoder(image[None]) for image in x]))


def test_it_uses_every_pixel_and_every_weight():
    encoder = ConvEncoder((1, 28, 28), 4, 6)
    x = torch.randn(3, 1, 28, 28, requires_grad=True)
    gradients = torch.autograd.grad(encoder(x).square().sum(), [x, *encoder.parameters()])
    assert (gradients[0].abs() > 0).float().mean() > 0.99
    assert all(g.abs().sum() > 0 for g in gradients)


@pytest.mark.parametrize("side", [8, 28])
def test_its_energy_has_the_score_that_differences_give(side):
    encoder = ConvEncoder((1, side, side), 4, 6).double()
    energy = Energy(encoder, torch.randn(6, dtype=torch.float64))
    x = torch.randn(3, 1, side, side, dtype=torch.float64)
    value, score = energy.with_score(x)
    assert value.shape == (3,)
    assert score.shape == x.shape
    along, h = torch.randn_like(x), 1e-6
    slope = (energy(x + h * along) - energy(x - h * along)) / (2 * h)
    torch.testing.assert_close(-(score * along).sum(dim=(1, 2, 3)), slope.detach(), rtol=1e-4, atol=1e-6)


def test_the_layout_in_memory_does_not_change_the_latent():
    encoder = ConvEncoder((3, 8, 8), 4, 6).double()
    x = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    latent = encoder(x)
    torch.testing.assert_close(encoder(x.contiguous(memory_format=torch.channels_last)), latent)
    torch.testing.assert_close(encoder(x.transpose(2, 3).contiguous().transpose(2, 3)), latent)
    plain = ConvEncoder((3, 8, 8), 4, 6).double()
    plain.load_state_dict({name: p.contiguous() for name, p in encoder.state_dict().items()})
    torch.testing.assert_close(plain(x), latent)
