"""The paper's augmentation: its draws are its own, its crops are crops, and gray images keep their values."""

import math
import random

import kornia.augmentation
import numpy as np
import pytest
import torch

from gedi.views import CropAndColour

PAPER = CropAndColour(crop=4, jitter=0.5, grayscale=0.5, flip=True)
STRONG = CropAndColour(jitter=0.8, grayscale=0.2, flip=True, resized=0.3, strength=2.0)


def images(n=8, channels=3, side=16, seed=0):
    return torch.rand(n, channels, side, side, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def drawn(monkeypatch):
    """Every uniform draw is what the test says."""

    def to(*values):
        def rand(*shape, generator=None, device=None):
            return torch.tensor(values).expand(shape)

        monkeypatch.setattr(torch, "rand", rand)

    return to


@pytest.mark.parametrize("view", [PAPER, STRONG])
def test_the_draws_follow_from_the_generator_alone(view, seeded):
    x = images()
    first = view(x, seeded(1))
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    assert torch.equal(view(x, seeded(1)), first)
    assert not torch.equal(view(x, seeded(2)), first)
    g = seeded(1)
    view(x, g)
    assert not torch.equal(view(x, g), first)  # and it goes on


def test_the_global_streams_stay_where_they_were(g):
    torch_state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    PAPER(images(), g)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy_state, strict=True))  # noqa: NPY002
    assert random.getstate() == python_state


@pytest.mark.parametrize(
    "view",
    [PAPER, STRONG, CropAndColour(crop=4), CropAndColour(resized=0.2), CropAndColour(jitter=1.0)],
)
def test_every_image_gets_draws_of_its_own(view, g):
    out = view(images(1).expand(8, -1, -1, -1), g)
    assert len({tuple(image.flatten().tolist()) for image in out}) > 5


def test_gray_images_are_moved_and_keep_their_values(g):
    x = images(channels=1)
    coloured = CropAndColour(jitter=1.0, grayscale=1.0)(x, g)
    assert torch.equal(coloured, x)
    cropped = CropAndColour(crop=4, jitter=1.0, grayscale=1.0, flip=True)(x, g)
    for image, source in zip(cropped, x, strict=True):
        assert set(image.flatten().tolist()) <= set(source.flatten().tolist())
    assert not torch.equal(cropped, x)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("size", [(8, 8), (6, 9)])
def test_a_crop_is_a_window_of_the_reflected_image(flip, size, g):
    x = torch.rand(500, 2, *size)
    out = CropAndColour(crop=3, flip=flip)(x, g)
    padded = torch.nn.functional.pad(x, [3] * 4, mode="reflect")
    height, width = size
    windows = torch.stack(
        [padded[:, :, i : i + height, j : j + width] for i in range(7) for j in range(7)]
    )  # (49, n, 2, height, width)
    plain = (windows == out).all(dim=4).all(dim=3).all(dim=2)  # (49, n)
    mirrored = (windows.flip(4) == out).all(dim=4).all(dim=3).all(dim=2)
    assert ((plain | mirrored).sum(dim=0) == 1).all()  # to the bit, and one window only
    assert mirrored.any(dim=0).float().mean().item() == pytest.approx(0.5 if flip else 0.0, abs=0.08 * flip)
    counts = (plain | mirrored).sum(dim=1)
    assert counts.min() > 0  # every window is drawn, and as often as another
    assert ((counts - 500 / 49) ** 2 / (500 / 49)).sum() < 85  # chi-square of 48 degrees: 1 in 1000


def test_half_of_the_images_are_mirrored_and_nothing_else(g):
    x = images(n=1000, side=4)
    out = CropAndColour(flip=True)(x, g)
    mirrored = (out == x.flip(3)).flatten(1).all(dim=1)
    assert mirrored.float().mean().item() == pytest.approx(0.5, abs=0.06)
    assert torch.equal(out[~mirrored], x[~mirrored])


def test_a_crop_of_the_whole_image_or_more_is_refused(g):
    with pytest.raises(ValueError, match="crop must be smaller than the images, 16x16, got 16"):
        CropAndColour(crop=16)(images(), g)
    assert CropAndColour(crop=15)(images(), g).shape == (8, 3, 16, 16)


def test_a_resized_crop_of_the_whole_image_is_the_image(g):
    x = images()
    torch.testing.assert_close(CropAndColour(resized=1.0)(x, g), x, rtol=0, atol=1e-5)


@pytest.mark.parametrize("flip", [False, True])
def test_a_resized_crop_of_a_quarter_is_the_quarter_enlarged(flip, drawn):
    """The right upper quarter, against PyTorch's own enlargement of a larger window."""
    x = images(side=16)
    shift, area, aspect, top, left = 0.5, 0.0, 0.5, 0.0, 1.0
    drawn(shift, shift, area, aspect, top, left, 0.0)
    out = CropAndColour(resized=0.25, flip=flip)(x, torch.Generator())
    enlarged = torch.nn.functional.interpolate(x[:, :, :9, 7:], scale_factor=2, mode="bilinear")
    expected = enlarged[:, :, :16, 2:]
    got = out.flip(3) if flip else out
    # the outermost row and column reach half a pixel over the image's edge
    torch.testing.assert_close(got[:, :, 1:, :-1], expected[:, :, 1:, :-1], rtol=0, atol=1e-5)


def test_a_resized_crop_is_of_its_area_its_form_and_inside(g):
    """Of an image whose channels are the coordinates, the crop can be read off."""
    side, smallest = 32, 0.2
    at = torch.arange(side, dtype=torch.float32)
    x = torch.stack([at[:, None].expand(side, side), at.expand(side, side)]).expand(2000, -1, -1, -1)
    out = CropAndColour(resized=smallest)(x, g)
    assert out.shape == x.shape
    middle = slice(1, -1)  # away from the image's edge, where reflection bends the coordinates
    rows, columns = out[:, 0, middle, 0], out[:, 1, 0, middle]
    height, width = ((a[:, -1] - a[:, 0]) * side / (side - 3) for a in (rows, columns))
    area, ratio = height * width / side**2, width / height
    assert smallest - 1e-3 < area.min() < smallest + 0.02
    assert 0.98 < area.max() < 1 + 1e-3
    assert area.mean().item() == pytest.approx((1 + smallest) / 2, abs=0.02)  # uniform
    assert area.std().item() == pytest.approx((1 - smallest) / math.sqrt(12), abs=0.02)
    assert 3 / 4 - 1e-3 < ratio.min() < 0.77
    assert 1.3 < ratio.max() < 4 / 3 + 1e-3
    assert ratio.log().mean().abs() < 0.02  # no side is preferred
    centre = (rows[:, 0] + rows[:, -1]) / 2 - (side - 1) / 2
    assert centre.mean().abs() < 0.3
    assert ((centre.abs() + height / 2) < side / 2 + 1e-2).all()  # inside


@pytest.mark.parametrize("crop", [0, 4])
def test_a_resized_crop_keeps_size_range_and_precision(crop, g):
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(6, 3, 12, 10, dtype=dtype)
        out = CropAndColour(crop=crop, resized=0.1, flip=True)(x, g)
        assert (out.shape, out.dtype) == (x.shape, dtype)
        assert (out.amin(dim=(2, 3)) >= x.amin(dim=(2, 3)) - 1e-5).all()
        assert (out.amax(dim=(2, 3)) <= x.amax(dim=(2, 3)) + 1e-5).all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"resized": 1.5}, "from 0 .off. to 1"), ({"resized": -0.1}, "from 0"), ({"strength": 6.0}, "from 0 to 5")],
)
def test_shares_and_strengths_that_do_not_exist_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        CropAndColour(**bad)


def test_probabilities_are_those_of_an_image(g):
    x = images(n=400, side=4)
    gray = CropAndColour(grayscale=0.3)(x, g)
    lost = (gray[:, 0] - gray[:, 1]).abs().amax(dim=(1, 2)) < 1e-6
    assert lost.float().mean().item() == pytest.approx(0.3, abs=0.08)
    assert torch.equal(gray[~lost], x[~lost])
    luma = (x * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(dim=1)
    torch.testing.assert_close(gray[lost][:, 2], luma[lost])
    jittered = CropAndColour(jitter=0.3)(x, g)
    changed = (jittered - x).abs().amax(dim=(1, 2, 3)) > 1e-6
    assert changed.float().mean().item() == pytest.approx(0.3, abs=0.08)
    assert torch.equal(jittered[~changed], x[~changed])
    assert torch.equal(CropAndColour(jitter=1e-9)(x[:20], g), x[:20])


def test_colours_are_those_of_kornia(seeded):
    x = images(n=6)
    ours = CropAndColour(jitter=1.0, strength=0.5)(x, seeded(1))
    g = seeded(1)
    torch.rand(6, generator=g)  # who is chosen: everyone
    torch.manual_seed(int(torch.randint(2**62, (), generator=g)))
    torch.testing.assert_close(ours, kornia.augmentation.ColorJitter(0.2, 0.2, 0.2, 0.05, p=1.0)(x))


def test_strength_is_how_far_colours_go(seeded):
    x = 0.3 + 0.4 * images(n=100, side=4)
    moved = [
        (CropAndColour(jitter=1.0, strength=s)(x, seeded(1)) - x).abs().mean().item() for s in (0.0, 0.01, 0.5, 1.0)
    ]
    assert moved[0] < 1e-5
    assert moved[1] < 0.01
    assert moved[3] == pytest.approx(2 * moved[2], rel=0.25)


def test_normalised_images_are_coloured_as_they_were_before(seeded):
    """Kornia cuts colours to [0, 1]: on shifted and scaled pixels that would wipe out most of an image."""
    x = images()
    normalised = (x - 0.1) / 0.28
    plain = CropAndColour(2, 1.0, 0.2)(x, seeded(3))
    out = CropAndColour(2, 1.0, 0.2, mean=0.1, std=0.28)(normalised, seeded(3))
    torch.testing.assert_close(out, (plain - 0.1) / 0.28, rtol=1e-4, atol=1e-4)
    assert out.max() > 2
    assert out.min() < 0


def test_without_anything_it_changes_nothing(g):
    assert CropAndColour().is_identity
    assert CropAndColour(strength=2.0).is_identity  # of a jitter that never comes
    for part in ({"crop": 1}, {"jitter": 0.1}, {"grayscale": 0.1}, {"flip": True}, {"resized": 0.5}):
        assert not CropAndColour(**part).is_identity
    x = images()
    assert torch.equal(CropAndColour()(x, g), x)


def test_images_of_any_size_and_channels_may_take_turns(g):
    for channels, side in ((3, 16), (1, 16), (3, 8), (3, 16)):
        assert PAPER(images(2, channels, side), g).shape == (2, channels, side, side)
    assert not PAPER(images().requires_grad_(), g).requires_grad


@pytest.mark.parametrize("channels", [1, 3])
def test_light_multiplies_each_image_and_ends_at_white(channels, g):
    x = images(n=64, channels=channels)
    x[:, :, 0, 0] = 0.0
    mean, std = 0.5, 0.25
    lit = CropAndColour(light=0.7, mean=mean, std=std)((x - mean) / std, g) * std + mean
    assert lit[:, :, 0, 0].abs().max() < 1e-6  # black stays black
    assert lit.max() <= 1 + 1e-6
    below = (lit < 1 - 1e-4) & (x > 0.01)
    logs = torch.where(below, (lit / x).log(), torch.nan)
    factors = logs.flatten(1).nanmedian(dim=1).values
    apart = (logs.flatten(1) - factors[:, None]).abs()
    assert apart[below.flatten(1)].max() < 1e-3  # one factor for all pixels and channels
    assert factors.min() < -0.5
    assert 0.5 < factors.max() <= 0.7
    assert len(factors.unique()) == 64


def test_without_light_nothing_is_drawn_for_it(seeded):
    g, again = seeded(1), seeded(1)
    CropAndColour(crop=1)(images(), g)
    CropAndColour(crop=1, light=0.0)(images(), again)
    assert torch.equal(g.get_state(), again.get_state())
