"""What must not be computed in half precision, whatever the autocast around it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

_DEVICES = ("cpu", "cuda", "mps")
_HALF = (torch.bfloat16, torch.float16)


@contextmanager
def no_autocast() -> Iterator[None]:
    """Operations keep the precision of what they are given."""
    with ExitStack() as outside:
        for device in _DEVICES:
            if torch.is_autocast_enabled(device):
                outside.enter_context(torch.autocast(device, enabled=False))
        yield


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """The function outside of any autocast, its half-precision tensors lifted to float32 first.

    For whatever exponentiates, factors a matrix or subtracts large numbers: with the 8 bits of bfloat16 a covariance is
    not positive definite and a difference of energies is noise. Encoders, where the time goes, stay as fast as asked
    for. Wider tensors are passed as they are, so outside of half precision no bit changes.

    Example:
        >>> @full_precision
        ... def squared(rows):
        ...     return rows @ rows.t()
        >>> with torch.autocast("cpu", torch.bfloat16):
        ...     squared(torch.ones(1, 2)).dtype, squared(torch.ones(1, 2, dtype=torch.bfloat16)).dtype
        (torch.float32, torch.float32)
    """

    @wraps(function)
    def lifted(*args: P.args, **kwargs: P.kwargs) -> R:
        if _is_full(args, kwargs.values()):  # the usual case: losses of small batches feel every check
            return function(*args, **kwargs)
        with no_autocast():
            return function(*_lifted(args), **_lifted(kwargs))

    return lifted


def _is_full(*given: Iterable[Any]) -> bool:
    """Whether nothing has to be done: no autocast, and no tensor in half precision or within something else."""
    for device in _DEVICES:
        if torch.is_autocast_enabled(device):
            return False
    for values in given:
        for value in values:
            kind = type(value)
            if kind in (list, tuple, dict) or (isinstance(value, Tensor) and value.dtype in _HALF):
                return False
    return True


def _lifted(given: Any) -> Any:
    if isinstance(given, Tensor):
        return given.float() if given.dtype in _HALF else given
    if type(given) in (list, tuple):
        return type(given)(map(_lifted, given))
    if isinstance(given, dict):
        return {name: _lifted(value) for name, value in given.items()}
    return given
