"""Encoder and heads as ONNX: clusters, probabilities and embeddings without torch."""

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gedi.checkpoints import write_whole
from gedi.data import Pixels
from gedi.errors import UserError
from gedi.fitted import Fitted

OUTPUTS = ("label", "probability", "embedding")


class Answering(nn.Module):
    """What is exported: points as they are given -> label (n,), probability (n, c), embedding (n, e)."""

    def __init__(self, fitted: Fitted) -> None:
        super().__init__()
        self.model, self.inputs = fitted.model, fitted.inputs

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Label, probability and embedding of each point."""
        seen = self.model.clustered(self.inputs(points))
        probability = seen.logits.softmax(dim=1)
        return probability.argmax(dim=1), probability, seen.embedding


def export_onnx(fitted: Fitted, path: str | Path) -> Path:
    """Write a model's encoder and heads as one ``.onnx`` file, for points as they are given: rows, or images in [0, 1].

    The number of points is free. The density stays behind: it is no single pass of a network.

    Args:
        fitted: what was learnt; ``model.fitted_`` of an estimator.
        path: the file.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise UserError(f"the file must end in .onnx, got {path.name!r}")
    example = _example(fitted)
    with tempfile.TemporaryDirectory() as folder, _quiet():
        made = Path(folder) / "model.onnx"
        try:
            torch.onnx.export(
                Answering(fitted).eval(),
                (example,),
                made,
                input_names=["points"],
                output_names=list(OUTPUTS),
                dynamic_shapes={"points": {0: torch.export.Dim.DYNAMIC}},
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        except ImportError:
            raise UserError("exporting needs onnx and onnxscript: pip install 'gedi-learn[onnx]'") from None
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, made.read_bytes())
    return path


def check_onnx(fitted: Fitted, path: str | Path, points: Any) -> float:
    """Run an exported file by onnxruntime, and return how far its probabilities are from torch's, at most."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = torch.as_tensor(points, dtype=torch.float32)
    _, probability, _ = session.run(None, {"points": given.numpy()})
    return float((torch.from_numpy(probability) - fitted.probabilities(given)).abs().max())


def _example(fitted: Fitted) -> Tensor:
    inputs = fitted.inputs
    if isinstance(inputs, Pixels):
        channels, height, width = fitted.shape
        return torch.zeros(3, channels, height - 2 * inputs.pad, width - 2 * inputs.pad)
    return torch.zeros(3, *((inputs.columns,) if inputs.columns is not None else fitted.shape))


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells its programmers much that no user can change."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
