"""The denoising network: any shape, a Gaussian's denoiser before it has learnt anything, and scales kept with it."""

import pytest
import torch

from gedi.nn.denoiser import Denoiser, Doubled

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (2, 5, 7), (3,), (64,)]


def stirred(shape, seeded):
    """A network whose answers are not 0 any more."""
    network = Denoiser(shape, 4, generator=seeded(0)).double()
    with torch.no_grad():
        for p in (p for p in network.parameters() if not p.any()):
            p.copy_(torch.randn(p.shape, generator=seeded(1), dtype=p.dtype))
    return network


@pytest.mark.parametrize("shape", SHAPES)
def test_untrained_it_is_right_for_a_gaussian(shape, seeded):
    network = Denoiser(shape, 4, generator=seeded(0)).double()
    centre = torch.randn(shape, generator=seeded(1), dtype=torch.float64)
    network.set_scales(centre, 2.0, 0.1, 6.0)
    x = torch.randn(5, *shape, generator=seeded(2), dtype=torch.float64)
    width = torch.tensor([0.1, 0.5, 1.0, 2.0, 6.0]).double()
    share = (4 / (4 + width**2)).view(-1, *[1] * len(shape))
    torch.testing.assert_close(network(x, width), centre + share * (x - centre))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_weight_takes_part_once_the_last_layer_has_moved(shape, seeded):
    network = stirred(shape, seeded)
    x = torch.randn(6, *shape, generator=seeded(2), dtype=torch.float64)
    found = network(x, torch.linspace(0.2, 2, 6).double())
    assert found.shape == x.shape
    found.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in network.parameters())


@pytest.mark.parametrize("shape", SHAPES)
def test_other_units_give_the_same_answer_in_those_units(shape, seeded):
    network = stirred(shape, seeded)
    x = torch.randn(6, *shape, generator=seeded(2), dtype=torch.float64)
    width = torch.linspace(0.2, 2, 6).double()
    before = network(x, width)
    network.set_scales(torch.full(shape, 7.0), 100.0, 10.0, 300.0)
    torch.testing.assert_close(network(100 * x + 7, 100 * width), 100 * before + 7)


def test_neighbours_in_a_batch_do_not_matter(seeded):
    network = stirred((1, 8, 8), seeded)
    x = torch.randn(6, 1, 8, 8, generator=seeded(2), dtype=torch.float64)
    width = torch.linspace(0.2, 2, 6).double()
    torch.testing.assert_close(network(x, width)[2:3], network(x[2:3], width[2:3]))


def test_its_gradient_is_right(seeded):
    network = stirred((3,), seeded)
    x = torch.randn(2, 3, generator=seeded(2), dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: network(x, torch.tensor([0.3, 1.0]).double()), x)


def test_scales_are_saved_with_the_weights():
    network, other = Denoiser((2,), 4), Denoiser((2,), 4)
    network.set_scales(torch.tensor([1.0, 2.0]), 3.0, 0.5, 9.0)
    other.load_state_dict(network.state_dict())
    torch.testing.assert_close(other.widths(3), torch.tensor([0.5, 4.5**0.5, 9.0]))
    assert other.centre.tolist() == [1.0, 2.0]
    assert other.spread == 3


@pytest.mark.parametrize("answers", [1, 2, 3])
@pytest.mark.parametrize("sides", [(4, 4), (3, 5)])
def test_the_last_convolution_is_that_of_torch_and_so_are_its_gradients(answers, sides, seeded):
    layer = Doubled(6, answers).double().to(memory_format=torch.channels_last)
    x = torch.randn(3, 6, *sides, generator=seeded(0), dtype=torch.float64)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    usual = torch.nn.functional.conv_transpose2d(x, layer.weight, layer.bias, stride=2, padding=1)
    way = torch.randn(usual.shape, generator=seeded(1), dtype=torch.float64)
    torch.testing.assert_close(layer(x), usual)
    wanted = torch.autograd.grad((usual * way).sum(), [x, layer.weight, layer.bias])
    found = torch.autograd.grad((layer(x) * way).sum(), [x, layer.weight, layer.bias])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = layer.float()(x.detach().float())
    torch.testing.assert_close(half.double(), usual.detach(), rtol=0, atol=0.1)


def test_noise_of_single_pixels_leaves_colour_images(seeded):
    """Images of one colour each, which a few channels at half the side cannot tell from their noise pixel by pixel."""
    left = {}
    for slope in (True, False):
        g, network = seeded(3), Denoiser((3, 16, 16), 8, generator=seeded(0))
        network.set_scales(torch.zeros(3, 16, 16), 0.5, 0.1, 1.5)
        if not slope:
            network.body.slope = None
        optimiser = torch.optim.Adam(network.parameters(), 5e-3)
        for _ in range(150):
            x = (torch.rand(32, 3, 1, 1, generator=g) * 2 - 1).expand(32, 3, 16, 16)
            width = 0.1 + torch.rand(32, generator=g)
            noised = x + width.view(-1, 1, 1, 1) * torch.randn(x.shape, generator=g)
            loss = ((network(noised, width) - x).flatten(1).square().mean(dim=1) / network.size(width) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            x = torch.zeros(64, 3, 16, 16)
            found = network(x + 0.5 * torch.randn(x.shape, generator=g), torch.full((64,), 0.5))
        left[slope] = float(found.std(dim=(2, 3)).mean())
    assert left[True] < 0.5 * left[False], left
