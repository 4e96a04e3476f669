"""Frozen codes: their temperature in closed form, what is trained and what is not."""

import pytest
import torch

from gedi.nn import Codes, Cube


def test_an_embedding_that_is_its_code_is_as_sure_as_the_temperature_says():
    codes = Codes(4, 4, torch.Generator().manual_seed(0))
    codes.weight.copy_(torch.tensor([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]))  # orthogonal
    p = codes.double()(codes.weight).softmax(dim=1)
    torch.testing.assert_close(p.diagonal(), torch.full((4,), 1 - 3e-8, dtype=torch.float64), rtol=1e-10, atol=0)
    assert p[0, 1].item() == pytest.approx(1e-8, rel=1e-6)


def test_codes_are_corners_no_two_alike_and_no_parameters():
    codes = Codes(3, 8, torch.Generator().manual_seed(0))
    assert set(map(tuple, codes.weight.tolist())) == {
        (a, b, c) for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)
    }
    assert not list(codes.parameters())
    assert Codes(2, 9, torch.Generator().manual_seed(0)).weight.shape == (9, 2)  # more than there are corners


def test_the_embedding_stays_in_the_cube_and_its_dimensions_are_centred():
    cube = Cube(5, 3, torch.Generator().manual_seed(0))
    w = cube(100 * torch.randn(64, 5) + 7)
    assert w.abs().max() <= 1
    assert torch.atanh(w.clamp(-0.999, 0.999)).mean(dim=0).abs().max() < 0.2
    assert w.requires_grad
