"""What a caller gives to make a constraint, checked: a mistake is named where it is made."""

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from gedi.errors import UserError

Domain = Sequence[Any]
_VALUES = 100_000  # of one variable
_STATES = 1_000_000  # good ones that may be listed
_BYTES = 1_000_000  # far more than a program that compiles has
_SHOWN = 80  # characters of a wrong value


def shown(x: Any) -> str:
    """A value as a message shows it: in one line, cut where it is long."""
    try:
        text = " ".join(repr(x).split())
    except Exception:  # a value that cannot even be shown must not hide what is wrong with it
        text = f"a {type(x).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def said(error: Exception) -> str:
    """What an error of a caller's own function says, in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}"


def whole(x: Any) -> TypeGuard[int]:
    """Whether it is a whole number; True and False are none."""
    return isinstance(x, int) and not isinstance(x, bool)


def items(x: Any, expected: str) -> list[Any]:
    """What a list, an array or a tensor holds."""
    try:
        return list(x.tolist() if isinstance(x, np.ndarray | Tensor) else x)
    except Exception:  # no list at all, or a tensor without values
        raise UserError(f"{expected}, got {shown(x)}") from None


def check_count(x: Any, name: str, least: int = 1) -> None:
    """A whole number, not below ``least``."""
    if not whole(x) or x < least:
        raise UserError(f"{name} must be a whole number, at least {least}, got {shown(x)}")


def checked_step(step: Callable[[Any, Any], Hashable]) -> Callable[[Any, Any], Hashable]:
    """The step of an automaton, whose states must be told apart."""
    if not callable(step):
        raise UserError(f"step must be a function (state, value) -> next state, got {shown(step)}")

    def checked(state: Any, value: Any) -> Hashable:
        try:
            following = step(state, value)
        except UserError:
            raise
        except Exception as error:  # its own traceback stays with it
            raise UserError(f"step failed at ({shown(state)}, {shown(value)}): {said(error)}") from error
        try:
            hash(following)
        except TypeError:
            raise UserError(
                f"states must be hashable (a tuple, not a list), but step gave {shown(following)}"
            ) from None
        return following

    return checked


def checked_accept(accept: Any) -> Callable[[Any], bool]:
    """Whether a last state is good, as a function."""
    if callable(accept):
        return _answering(accept)
    if not isinstance(accept, Iterable):
        raise UserError(f"accept must be a function of the last state, or the good states, got {shown(accept)}")
    try:
        good = set(itertools.islice(accept, _STATES + 1))
    except TypeError:
        raise UserError(f"the good states must be hashable (tuples, not lists), got {shown(accept)}") from None
    if len(good) > _STATES:
        raise UserError(f"accept may list at most {_STATES:,} good states; give a function of the state instead")
    return good.__contains__


def _answering(accept: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def answer(state: Any) -> bool:
        try:
            return bool(accept(state))
        except Exception as error:
            raise UserError(f"accept must say True or False, but failed at {shown(state)}: {said(error)}") from error

    return answer


def program_text(program: Any) -> str:
    """The text of a program, read if it is a file."""
    if isinstance(program, str):
        return program
    if not isinstance(program, Path):
        raise UserError(f"a program must be text or the Path of a file, got {type(program).__name__}")
    try:
        if not program.is_file():
            raise UserError(f"a program must be text or the Path of a file, but {shown(str(program))} is not there")
        if program.stat().st_size > _BYTES:
            raise UserError(f"a program must have at most {_BYTES:,} bytes, got {program.stat().st_size:,}")
        return program.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the program {shown(str(program))} cannot be read as UTF-8 text: {said(error)}") from None


def check_names(names: Any, what: str) -> None:
    """Texts; one will do for a query."""
    if names is None or (isinstance(names, str) and what == "query"):
        return
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise UserError(f"{what} must be text or a list of texts, got {shown(names)}")


def is_domain_list(domain: Any) -> bool:
    """Whether it holds domains rather than values."""
    if isinstance(domain, range | str | np.ndarray | Tensor) or not isinstance(domain, Sequence):
        return False
    return all(isinstance(d, list | tuple | range) for d in domain)


def _plain(domain: Any, name: str) -> Iterable[Any]:
    """Arrays and tensors as the plain values they hold: tensors themselves cannot be told apart."""
    if isinstance(domain, np.ndarray | Tensor):
        if domain.ndim != 1 or (isinstance(domain, Tensor) and (domain.is_meta or domain.layout is not torch.strided)):
            raise UserError(f"{name} must be a row of values, got {type(domain).__name__} {tuple(domain.shape)}")
        return list(domain.tolist())
    return (_item(value, name) for value in domain)


def _item(value: Any, name: str) -> Any:
    if isinstance(value, np.ndarray | Tensor):
        raise UserError(f"{name} must hold plain values, got a {type(value).__name__}; use .tolist()")
    return value


def checked_domain(domain: Domain, name: str = "domain") -> list[Any]:
    """The values of a variable: different ones, at least one."""
    if not isinstance(domain, Iterable):
        use = f"; use range({domain})" if isinstance(domain, int) else ""
        raise UserError(f"{name} must be the values of a variable, got {shown(domain)}{use}")
    values = list(itertools.islice(_plain(domain, name), _VALUES + 1))
    if len(values) > _VALUES:
        raise UserError(f"{name} must hold at most {_VALUES:,} values; group them into coarser ones")
    try:
        different = len(set(values))
    except TypeError:
        raise UserError(f"{name} must hold values that can be told apart (not lists), got {shown(values)}") from None
    if len(values) < 1 or different != len(values):
        raise UserError(f"{name} must hold different values, at least one, got {shown(values)}")
    return values


def checked_domains(domains: Sequence[Domain]) -> list[Domain]:
    """The values of each variable, of at least one."""
    if not isinstance(domains, Iterable):
        raise UserError(f"domains must be a list, the values of each variable, got {shown(domains)}")
    if isinstance(domains, np.ndarray | Tensor) and domains.ndim == 0:
        raise UserError(f"domains must be a list, the values of each variable, got {shown(domains)}")
    checked: list[Domain] = [checked_domain(domain, f"domain {i}") for i, domain in enumerate(domains)]
    if not checked:
        raise UserError("a constraint needs at least one variable, got no domains")
    return checked
