"""The paper's encoder: its size, and its structure against the paper's table written out again."""

import math

import pytest
import torch
from torch import nn

from gedi.nn import ResNet8
from gedi.nn.model import Energy


def flat(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


class PaperTable(nn.Module):
    """Table ``backbone``, line by line; identity shortcuts in blocks 2 to 4, and a last LeakyReLU before the mean."""

    def __init__(self, channels, f, stem=1):
        super().__init__()
        self.block1 = nn.Sequential(
            nn.Conv2d(channels, f, stem + 2, stem, 1), nn.LeakyReLU(0.2), nn.Conv2d(f, f, 3, 1, 1), nn.AvgPool2d(2)
        )
        self.res_layer1 = nn.Sequential(nn.AvgPool2d(2 * stem), nn.Conv2d(channels, f, 1, padding=0))
        self.block2 = nn.Sequential(*self.two(f), nn.AvgPool2d(2))
        self.res_layer2 = nn.AvgPool2d(2)
        self.block3 = nn.Sequential(*self.two(f))
        self.block4 = nn.Sequential(*self.two(f))
        self.end = nn.Sequential(nn.LeakyReLU(0.2), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    @staticmethod
    def two(f):
        return nn.LeakyReLU(0.2), nn.Conv2d(f, f, 3, 1, 1), nn.LeakyReLU(0.2), nn.Conv2d(f, f, 3, 1, 1)

    def forward(self, x):
        x = self.block1(x) + self.res_layer1(x)
        x = self.block2(x) + self.res_layer2(x)
        x = self.block3(x) + x
        x = self.block4(x) + x
        return self.end(x)

    def convolutions(self):
        """In the order in which they are met, the shortcut's last."""
        blocks = (self.block1, self.block2, self.block3, self.block4, self.res_layer1)
        return [layer for block in blocks for layer in block if isinstance(layer, nn.Conv2d)]


@pytest.mark.parametrize(("width", "weights"), [(128, 1_037_184), (256, 4_138_752)])
def test_it_has_the_papers_number_of_weights(width, weights):
    ours = ResNet8(3, width)
    assert sum(p.numel() for p in ours.parameters()) == weights
    assert sum(p.numel() for p in PaperTable(3, width).parameters()) == weights


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(8, 8), (28, 28), (32, 32), (27, 27), (9, 14)])
@pytest.mark.parametrize("stem", [1, 2])
def test_it_computes_what_the_papers_table_says(channels, size, stem):
    ours, table = ResNet8(channels, 6, stem).double(), PaperTable(channels, 6, stem).double()
    ordered = [ours.first, ours.second, *[ours.blocks[i][k] for i in range(3) for k in (1, 3)], ours.shortcut]
    with torch.no_grad():
        for mine, theirs in zip(ordered, table.convolutions(), strict=True):
            mine.bias.normal_()  # zero biases would hide a missing one
            theirs.weight.copy_(mine.weight)
            theirs.bias.copy_(mine.bias)
    x = torch.randn(4, channels, *size, dtype=torch.float64)
    assert ours(x).shape == (4, 6)
    torch.testing.assert_close(ours(x), table(x))


def test_the_latent_has_f_dimensions_at_full_size():
    assert ResNet8(3, 128)(torch.zeros(2, 3, 32, 32)).shape == (2, 128)


def places(encoder, side):
    """How often each convolution's kernel is laid on an image, times the size of the kernel."""
    work = 0

    def count(layer, _, out):
        nonlocal work
        work += out[0, 0].numel() * layer.weight.numel()

    for layer in encoder.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(count)
    encoder(torch.zeros(1, 3, side, side))
    return work


def test_a_stem_of_two_costs_a_quarter():
    assert places(ResNet8(3, 32, stem=2), 32) == pytest.approx(places(ResNet8(3, 32), 32) / 4, rel=0.05)


def test_a_stem_of_two_differs_in_its_first_convolution_only():
    paper, light = ({k: tuple(p.shape) for k, p in ResNet8(3, 4, s).named_parameters()} for s in (1, 2))
    assert {k for k in paper if paper[k] != light[k]} == {"first.weight"}
    assert light["first.weight"] == (4, 3, 4, 4)


@pytest.mark.parametrize("stem", [1, 2])
def test_every_pixel_and_every_weight_counts(stem):
    encoder = ResNet8(3, 4, stem)
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    gradients = torch.autograd.grad(encoder(x).square().sum(), [x, *encoder.parameters()])
    assert (gradients[0].abs() > 0).all()
    assert all(g.abs().sum() > 0 for g in gradients)


def test_the_layout_in_memory_does_not_change_the_latent():
    encoder = ResNet8(3, 4).double()
    x = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    latent = encoder(x)
    torch.testing.assert_close(encoder(x.contiguous(memory_format=torch.channels_last)), latent)
    plain = ResNet8(3, 4).double().to(memory_format=torch.contiguous_format)
    plain.load_state_dict({name: p.contiguous() for name, p in encoder.state_dict().items()})
    torch.testing.assert_close(plain(x), latent)


@pytest.mark.parametrize(("stem", "least"), [(1, 4), (2, 8)])
def test_the_smallest_image_works_and_smaller_ones_are_refused(stem, least):
    encoder = ResNet8(1, 4, stem)
    assert encoder(torch.randn(2, 1, least, least)).isfinite().all()
    with pytest.raises(ValueError, match=f"at least {least} pixels high and wide for stem={stem}"):
        encoder(torch.zeros(2, 1, least, least - 1))


def test_a_stem_must_be_a_step():
    with pytest.raises(ValueError, match="stem is a number of pixels"):
        ResNet8(3, 4, 0)


@pytest.mark.parametrize("stem", [1, 2])
def test_there_is_no_normalisation(stem):
    assert {type(m) for m in ResNet8(3, 4, stem).modules()} <= {
        ResNet8,
        nn.Conv2d,
        nn.LeakyReLU,
        nn.Sequential,
        nn.ModuleList,
    }
    encoder = ResNet8(3, 4, stem).double()
    x = torch.randn(3, 3, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(encoder(x), torch.cat([encoder(image[None]) for image in x]))


def test_the_weights_follow_from_the_generator_alone(seeded):
    first = flat(ResNet8(3, 4, generator=seeded(1)))
    torch.manual_seed(99)
    again, other = (flat(ResNet8(3, 4, generator=seeded(s))) for s in (1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_weights_start_xavier_uniform_and_the_biases_at_zero(seeded):
    encoder = ResNet8(3, 32, generator=seeded(0))
    expected = {
        encoder.first: math.sqrt(6 / (3 * 9 + 32 * 9)),
        encoder.shortcut: math.sqrt(6 / (3 + 32)),
        encoder.second: math.sqrt(2) * math.sqrt(6 / (2 * 32 * 9)),
        encoder.blocks[2][3]: math.sqrt(2) * math.sqrt(6 / (2 * 32 * 9)),
    }
    for layer, bound in expected.items():
        assert 0.95 * bound < layer.weight.abs().max() <= bound
    assert all((layer.bias == 0).all() for layer in encoder.modules() if isinstance(layer, nn.Conv2d))


def test_its_energy_has_a_score():
    encoder = ResNet8(3, 4).double()
    energy = Energy(encoder, torch.randn(4, dtype=torch.float64))
    x = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    along, h = torch.randn_like(x), 1e-6
    slope = (energy(x + h * along) - energy(x - h * along)) / (2 * h)
    score = energy.with_score(x)[1]
    torch.testing.assert_close(-(score * along).sum(dim=(1, 2, 3)), slope.detach(), rtol=1e-4, atol=1e-6)
