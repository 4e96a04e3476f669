"""Compiled encoders, where there is a compiler that works."""

from collections.abc import Sequence

import torch
from torch import nn


def compile_encoder(encoder: nn.Module, shape: Sequence[int]) -> bool:
    """Compile an encoder's passes in place; if that does not work here, leave it as it was.

    The result is the same up to rounding. It takes a minute or so, on a processor as long as many steps.

    Args:
        encoder: any module (n, *shape) -> (n, h).
        shape: of its points.

    Returns:
        Whether it is compiled now.
    """
    parameter = next(encoder.parameters(), torch.empty(0))
    try:
        encoder.compile()
        x = torch.zeros(2, *shape, device=parameter.device, dtype=parameter.dtype, requires_grad=True)
        torch.autograd.grad(encoder(x).sum(), x)  # as samplers ask for it
    except Exception:  # no compiler, no headers, an operation it does not know: each raises in its own way
        encoder._compiled_call_impl = None
        return False
    return True
