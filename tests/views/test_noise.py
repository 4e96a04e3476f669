import torch

from gedi.views import gaussian_noise


def test_noise_is_centred_on_each_point_with_the_width_asked_for(g):
    x = torch.tensor([5.0, -2.0]).repeat(40_000, 1)
    noise = gaussian_noise(x, 0.3, g) - x
    assert noise.mean(0).abs().max() < 4 * 0.3 / 200
    torch.testing.assert_close(noise.T.cov(), 0.09 * torch.eye(2), rtol=0, atol=0.003)
    assert abs((noise / 0.3).pow(4).mean().item() - 3) < 0.1  # and it is Gaussian


def test_no_width_is_no_noise(g):
    x = torch.randn(5, 1, 4, 4)
    assert torch.equal(gaussian_noise(x, 0.0, g), x)
