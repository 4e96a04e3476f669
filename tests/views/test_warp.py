"""Warps: what they are at known draws, and where their draws come from."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.views import Warp

EVERYTHING = Warp(rotation=15, shear=0.3, scale=0.2, shift=2, elastic=0.8)


@pytest.fixture
def extreme(monkeypatch):
    """Every uniform draw is the largest (1) or the smallest (-1) that is allowed."""

    def to(sign):
        def drawn(*shape, generator=None, device=None, dtype=None):
            return torch.full(shape, (1.0 + sign) / 2, dtype=dtype)

        monkeypatch.setattr(torch, "rand", drawn)

    return to


def blob(side=17):
    """A smooth bump well inside the image, off its centre."""
    y, x = torch.meshgrid(
        torch.arange(side, dtype=torch.float64), torch.arange(side, dtype=torch.float64), indexing="ij"
    )
    c = (side - 1) / 2
    return torch.exp(-((x - c - 2) ** 2 + (y - c + 1) ** 2) / 8)[None, None]


def place(image):
    """The centre of mass of one image, (x, y) from the middle."""
    side = image.shape[-1]
    at = torch.arange(side, dtype=image.dtype) - (side - 1) / 2
    mass = image[0, 0] / image.sum()
    return torch.stack([(mass.sum(dim=0) * at).sum(), (mass.sum(dim=1) * at).sum()])


@given(st.integers(1, 4), st.integers(1, 3), st.integers(4, 12), st.integers(0, 10**6))
def test_without_any_extent_the_images_stay(n, channels, side, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, channels, side, side, generator=g, dtype=torch.float64)
    torch.testing.assert_close(Warp()(x, g), x)
    assert Warp().is_identity


@pytest.mark.parametrize("part", ["rotation", "shear", "scale", "shift", "elastic"])
def test_each_part_alone_changes_the_images(part, g):
    warp = Warp(**{part: 0.5 if part != "rotation" else 10.0})
    x = torch.rand(2, 1, 8, 8)
    assert not warp.is_identity
    assert (warp(x, g) - x).abs().max() > 0.01


@pytest.mark.parametrize("pixels", [1, 2, 3])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [(8, 8), (6, 10)])
def test_a_shift_by_whole_pixels_is_a_roll_that_fills_with_nothing(extreme, pixels, sign, size):
    x = torch.randn(3, 2, *size, dtype=torch.float64)
    extreme(sign)
    moved = Warp(shift=pixels)(x, torch.Generator())
    rolled = torch.roll(x, (-sign * pixels, -sign * pixels), (2, 3))
    gone = slice(-pixels, None) if sign > 0 else slice(0, pixels)
    rolled[:, :, gone, :] = 0
    rolled[:, :, :, gone] = 0
    torch.testing.assert_close(moved, rolled)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_quarter_turn_is_a_quarter_turn(extreme, sign):
    x = torch.rand(2, 1, 9, 9, dtype=torch.float64)
    extreme(sign)
    turned = Warp(rotation=90)(x, torch.Generator())
    torch.testing.assert_close(turned, torch.rot90(x, sign, (2, 3)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("angle", [10.0, 33.0, 60.0])
def test_a_rotation_keeps_mass_and_distance_from_the_middle(extreme, angle):
    x = blob()
    extreme(1)
    turned = Warp(rotation=angle)(x, torch.Generator())
    assert turned.sum().item() == pytest.approx(x.sum().item(), rel=0.02)
    before, after = place(x), place(turned)
    assert after.norm().item() == pytest.approx(before.norm().item(), rel=0.03)
    cosine = (before @ after) / before.norm() / after.norm()
    assert math.degrees(math.acos(cosine)) == pytest.approx(angle, abs=1.5)


def test_scale_stretches_by_its_factor_and_shear_by_its_slope(extreme):
    x = blob(25)
    extreme(-1)  # places are drawn in by exp(-0.3), so the image grows
    grown = Warp(scale=0.3)(x, torch.Generator())
    assert grown.sum().item() == pytest.approx(x.sum().item() * math.exp(0.6), rel=0.03)
    torch.testing.assert_close(place(grown), place(x) * math.exp(0.3), rtol=0.03, atol=0.02)
    sheared = Warp(shear=0.4)(x, torch.Generator())
    assert sheared.sum().item() == pytest.approx(x.sum().item(), rel=0.02)
    (x0, y0), (x1, y1) = place(x).tolist(), place(sheared).tolist()
    assert y1 == pytest.approx(y0, abs=0.02)
    assert x1 == pytest.approx(x0 + 0.4 * y0, abs=0.05)


def test_each_axis_is_scaled_on_its_own(g):
    at = torch.arange(25) - 12.0
    x = torch.exp(-(at[:, None] ** 2 + at[None, :] ** 2) / 8)[None, None].expand(50, -1, -1, -1)
    mass = Warp(scale=0.4)(x, g)[:, 0]
    mass = mass / mass.sum(dim=(1, 2), keepdim=True)
    across, down = ((mass.sum(dim=d) * at**2).sum(dim=1).log() / 2 for d in (1, 2))  # log widths
    assert across.std() > 0.15
    assert (across - down).std().item() == pytest.approx(across.std().item() * 2**0.5, rel=0.3)


def test_an_elastic_field_moves_by_about_its_width(g):
    x = blob(21).expand(400, -1, -1, -1)
    moved = Warp(elastic=0.7, grid=3)(x, g)
    ends = torch.stack([place(image[None]) for image in moved])
    assert ends.std(dim=0).mean().item() == pytest.approx(0.7 * 0.75, rel=0.35)  # the bump averages the field
    assert (ends.mean(dim=0) - place(x[:1])).norm() < 0.15


def test_every_image_gets_draws_of_its_own(g):
    x = blob().expand(6, -1, -1, -1).float()
    for warp in (EVERYTHING, Warp(rotation=15), Warp(shear=0.3), Warp(scale=0.2), Warp(shift=2), Warp(elastic=0.8)):
        out = warp(x, g)
        assert all((out[i] - out[j]).abs().max() > 1e-4 for i in range(6) for j in range(i))


def test_channels_of_one_image_move_together(g):
    x = torch.rand(4, 1, 8, 8).expand(-1, 3, -1, -1)
    out = EVERYTHING(x, g)
    assert torch.equal(out[:, 0], out[:, 1])
    assert torch.equal(out[:, 0], out[:, 2])


def test_the_draws_follow_from_the_generator_alone(seeded):
    x = torch.rand(4, 1, 8, 8)
    state = torch.get_rng_state()
    first = EVERYTHING(x, seeded(1))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(77)
    assert torch.equal(EVERYTHING(x, seeded(1)), first)
    assert not torch.equal(EVERYTHING(x, seeded(2)), first)
    g = seeded(1)
    EVERYTHING(x, g)
    assert not torch.equal(EVERYTHING(x, g), first)  # and it goes on


def test_what_is_drawn_for_a_place_in_the_batch_does_not_depend_on_the_images(seeded):
    x = torch.rand(5, 1, 8, 8)
    order = torch.tensor([3, 0, 4, 1, 2])
    same = x[:1].expand(5, -1, -1, -1)
    together, alone = EVERYTHING(x[order], seeded(1)), EVERYTHING(same, seeded(1))
    assert torch.equal(together[1], alone[1])  # image 0 stands at place 1 in both


def test_no_gradient_flows_and_the_images_stay(g):
    x = torch.rand(3, 1, 8, 8, requires_grad=True)
    before = x.detach().clone()
    assert not EVERYTHING(x, g).requires_grad
    assert torch.equal(x, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shape_and_precision_stay(dtype, g):
    x = torch.rand(2, 3, 8, 8, dtype=dtype)
    out = EVERYTHING(x, g)
    assert (out.shape, out.dtype) == (x.shape, dtype)
    assert out.min() >= 0
    assert out.max() <= x.max() + 1e-6
