"""Frozen features of pretrained networks, by name, where their package and weights are there.

``timm:resnet18`` and ``hf:facebook/dinov2-small`` take images, ``st:all-MiniLM-L6-v2`` takes texts.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.errors import UserError, unknown

_AT_A_TIME = 64
_PACKAGES = {"timm": "timm", "hf": "transformers", "st": "sentence_transformers"}
Extractor = Callable[[Any], Tensor]


def is_named(encoder: Any) -> bool:
    """Whether an encoder is a name such as ``timm:resnet18``."""
    return isinstance(encoder, str) and ":" in encoder


def features_of(name: str, given: Any) -> np.ndarray:
    """Features (n, d) of images (n, channels, height, width), as bytes or in [0, 1], or of texts.

    Args:
        name: of the network, ``timm:...``, ``hf:...`` or ``st:...``.
        given: images, or a list of texts.
    """
    extract = _extractor(name)
    texts = name.startswith("st:")
    points = _texts(given) if texts else _images(given)
    with torch.no_grad():
        parts = [extract(points[at : at + _AT_A_TIME]).float() for at in range(0, len(points), _AT_A_TIME)]
    found: np.ndarray = torch.cat(parts).cpu().numpy()
    if found.ndim != 2:
        raise UserError(f"{name} must give one vector for each point, got shape {found.shape}")
    return found


@lru_cache(maxsize=2)
def _extractor(name: str) -> Extractor:
    kind, _, model = name.partition(":")
    if kind not in _PACKAGES:
        raise unknown("kind of encoder", kind, _PACKAGES)
    try:
        package = importlib.import_module(_PACKAGES[kind])
    except ImportError as error:
        raise UserError(
            f"encoder {name!r} needs the package {_PACKAGES[kind]}, which cannot be imported: {error}"
        ) from None
    try:
        return {"timm": _timm, "hf": _hugging_face, "st": _sentences}[kind](package, model)
    except (OSError, RuntimeError, ValueError, KeyError) as error:  # a name that is none, or no network to get it from
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"encoder {name!r} must be one whose weights are there or can be got: {said}") from None


def _timm(timm: Any, model: str) -> Extractor:
    network: nn.Module = timm.create_model(model, pretrained=True, num_classes=0).eval()
    about = timm.data.resolve_model_data_config(network)
    _, height, width = about["input_size"]
    mean, std = (torch.tensor(about[key]).view(1, -1, 1, 1) for key in ("mean", "std"))

    def extract(images: Tensor) -> Tensor:
        scaled = F.interpolate(images, (height, width), mode="bicubic", antialias=True).clamp(0, 1)
        features: Tensor = network((scaled - mean) / std)
        return features

    return extract


def _hugging_face(transformers: Any, model: str) -> Extractor:
    prepare = transformers.AutoImageProcessor.from_pretrained(model)
    # weights that can run no code, and no code of the repository
    network = transformers.AutoModel.from_pretrained(model, use_safetensors=True, trust_remote_code=False).eval()

    def extract(images: Tensor) -> Tensor:
        made = prepare(images=list(images), return_tensors="pt", do_rescale=False)
        out = network(**made)
        pooled: Tensor | None = getattr(out, "pooler_output", None)
        return out.last_hidden_state.mean(dim=1) if pooled is None else pooled.flatten(1)

    return extract


def _sentences(package: Any, model: str) -> Extractor:
    network = package.SentenceTransformer(model, trust_remote_code=False)

    def extract(texts: Sequence[str]) -> Tensor:
        found: Tensor = network.encode(list(texts), convert_to_tensor=True, show_progress_bar=False)
        return found

    return extract


def _images(given: Any) -> Tensor:
    images = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
    if images.ndim != 4 or images.shape[1] not in (1, 3) or images.dtype.kind not in "uf":
        raise UserError(f"a pretrained encoder takes images (n, 1 or 3, height, width), got shape {images.shape}")
    x = torch.from_numpy(np.ascontiguousarray(images)).float() / (255 if images.dtype == np.uint8 else 1)
    if not (x.min() >= 0 and x.max() <= 1):
        raise UserError(f"images must be bytes (uint8) or numbers in [0, 1], got {x.min():g} to {x.max():g}")
    return x.expand(-1, 3, -1, -1)


def _texts(given: Any) -> list[str]:
    texts = list(given)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UserError("a sentence encoder takes texts, one for each point")
    return texts
