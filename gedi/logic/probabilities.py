"""What a caller gives as probabilities, checked before a circuit makes a plausible number of it."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gedi.errors import UserError

_TOLERANCE = 1e-3  # what clamping and float32 leave of a sum of 1; logits are further off
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def check_tensor(x: Any, name: str) -> None:
    """A dense tensor of floating-point numbers."""
    if not isinstance(x, Tensor):
        use = "; use torch.tensor(...)" if hasattr(x, "__len__") else ""
        raise UserError(f"{name} must be a tensor, got {_kind(x)}{use}")
    if x.dtype not in _FLOATS:
        raise UserError(f"{name} must hold floating-point numbers, got {x.dtype}; convert it with .float()")
    if x.layout is not torch.strided or x.is_meta or x.is_nested:
        raise UserError(f"{name} must be a dense tensor that holds its values, got a {_layout(x)} one")


def check_tensors(xs: Any, name: str) -> None:
    """A tensor, or one for each variable."""
    if not isinstance(xs, list | tuple):
        check_tensor(xs, name)
        return
    for x in xs:
        if not isinstance(x, Tensor):
            raise UserError(f"{name} must be a tensor, or a list of tensors, got a list that holds {_kind(x)}")
        check_tensor(x, name)
    if len({x.device for x in xs}) > 1:
        raise UserError(f"{name} must lie on one device, got {', '.join(sorted({str(x.device) for x in xs}))}")


def check_distributions(logs: Tensor, sizes: Sequence[int], variables: Sequence[str], name: str) -> None:
    """Log-probabilities, (groups, values of all variables one after another), that add up to 1 for each variable."""
    logs = logs.detach()
    if logs.dtype in (torch.float16, torch.bfloat16):
        tolerance = max(_TOLERANCE, 8 * torch.finfo(logs.dtype).eps)
        logs = logs.float()
    else:
        tolerance = _TOLERANCE
    if len(set(sizes)) == 1:
        totals = logs.reshape(len(logs), len(sizes), sizes[0]).logsumexp(dim=2)
    else:
        totals = torch.stack([part.logsumexp(dim=1) for part in torch.split(logs, list(sizes), dim=1)], dim=1)
    right = totals.abs() <= tolerance  # NaN is not
    if bool(right.all()):
        return
    group, variable = (~right).nonzero()[0].tolist()
    where = f"variable {variables[variable]} of group {group}"
    total = float(totals[group, variable].exp())
    if total != total:
        raise UserError(f"{name} must hold probabilities, got NaN for {where}")
    raise UserError(
        f"{name} must hold probabilities, but those of {where} add up to {total:.6g} instead of 1; "
        f"use log_softmax or softmax, or say normalised=False to sum over weights"
    )


def check_weights(x: Tensor, name: str, least: float = -torch.inf) -> None:
    """Numbers from ``least`` to below infinity."""
    x = x.detach()
    wrong = ~((x >= least) & (x < torch.inf))  # NaN is wrong too
    if bool(wrong.any()):
        bound = "below infinity" if least == -torch.inf else f"finite and at least {least:g}"
        raise UserError(f"{name} must be {bound}, got {float(x[wrong][0])}")


def _kind(x: Any) -> str:
    return "None" if x is None else f"a {type(x).__name__}"


def _layout(x: Tensor) -> str:
    return "nested" if x.is_nested else "meta" if x.is_meta else str(x.layout).removeprefix("torch.")
