"""The paper's augmentation: its draws are its own, and gray images keep their colour."""

import random

import numpy as np
import pytest
import torch

from gedi.views import CropAndColour

PAPER = CropAndColour(crop=4, jitter=0.5, grayscale=0.5)


def images(n=8, channels=3, side=16, seed=0):
    return torch.rand(n, channels, side, side, generator=torch.Generator().manual_seed(seed))


def test_the_draws_follow_from_the_generator_alone(seeded):
    x = images()
    first = PAPER(x, seeded(1))
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    assert torch.equal(PAPER(x, seeded(1)), first)
    assert not torch.equal(PAPER(x, seeded(2)), first)
    g = seeded(1)
    PAPER(x, g)
    assert not torch.equal(PAPER(x, g), first)  # and it goes on


def test_the_global_streams_stay_where_they_were(g):
    torch_state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    PAPER(images(), g)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy_state, strict=True))  # noqa: NPY002
    assert random.getstate() == python_state


def test_every_image_gets_draws_of_its_own(g):
    out = PAPER(images(1).expand(8, -1, -1, -1), g)
    assert len({tuple(image.flatten().tolist()) for image in out}) > 5


def test_gray_images_are_cropped_and_keep_their_values(g):
    x = images(channels=1)
    coloured = CropAndColour(jitter=1.0, grayscale=1.0)(x, g)
    assert torch.equal(coloured, x)
    cropped = CropAndColour(crop=4, jitter=1.0, grayscale=1.0)(x, g)
    for image, source in zip(cropped, x, strict=True):
        assert set(image.flatten().tolist()) <= set(source.flatten().tolist())
    assert not torch.equal(cropped, x)


def test_a_crop_is_a_window_of_the_reflected_image(g):
    x = images(n=20, channels=1, side=8)
    out = CropAndColour(crop=3)(x, g)
    padded = torch.nn.functional.pad(x, [3] * 4, mode="reflect")
    found = set()
    for image, wide in zip(out, padded, strict=True):
        places = [
            (i, j)
            for i in range(7)
            for j in range(7)
            if torch.allclose(wide[:, i : i + 8, j : j + 8], image, atol=1e-6)
        ]
        assert places
        found.add(places[0])
    assert len(found) > 8


def test_probabilities_are_those_of_an_image(g):
    x = images(n=400, side=4)
    gray = CropAndColour(grayscale=0.3)(x, g)
    share = ((gray[:, 0] - gray[:, 1]).abs().amax(dim=(1, 2)) < 1e-6).float().mean().item()
    assert share == pytest.approx(0.3, abs=0.08)
    jittered = CropAndColour(jitter=0.3)(x, g)
    share = ((jittered - x).abs().amax(dim=(1, 2, 3)) > 1e-6).float().mean().item()
    assert share == pytest.approx(0.3, abs=0.08)
    assert torch.equal(CropAndColour(jitter=1e-9)(x[:20], g), x[:20])


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
    assert not PAPER.is_identity
    x = images()
    assert torch.equal(CropAndColour()(x, g), x)


def test_images_of_another_size_get_a_pipeline_of_their_own(g):
    for channels, side in ((3, 16), (1, 16), (3, 8), (3, 16)):
        assert PAPER(images(2, channels, side), g).shape == (2, channels, side, side)
    assert not PAPER(images().requires_grad_(), g).requires_grad
