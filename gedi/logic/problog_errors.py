"""Whatever problog raises becomes one line, with the place in the program that it is about."""

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from gedi.errors import UserError, unknown
from gedi.logic.problog_quiet import quiet_import

with quiet_import():
    from problog.engine import UnknownClause
    from problog.errors import NonGroundQuery, ParseError, ProbLogError
    from problog.eval_nodes import NegativeCycle
    from problog.logic import Not

_FRAMES = 10_000  # Python's recursion limit while problog runs, as it wishes
_SHOWN = 120  # characters of a query or a line that a message repeats


class Cycle(UserError):
    """A recursion through a negation, as problog sees it."""


@contextlib.contextmanager
def as_user_error(
    text: str, predicates: set[str] | None = None, what: str = "program", goal: str = "", own: Any = None
) -> Iterator[None]:
    """Run problog without output and warnings, and turn whatever it raises into one line.

    Args:
        text: where line numbers point to.
        predicates: what the program defines, to guess a misspelt one.
        what: what the text is.
        goal: what is being grounded.
        own: the goal as a term if it was given outside the text.
    """
    silence = io.StringIO()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            warnings.simplefilter("ignore")
            yield
    except (UserError, MemoryError):
        raise
    except ParseError as error:
        raise _syntax_error(error, text, what) from error
    except UnknownClause as error:
        if error.signature == "!/0":
            raise UserError(
                f"ProbLog has no cut{where_in(error.location, text)}; use a negated condition \\+"
            ) from error
        inner = own.args[0] if isinstance(own, Not) else own
        missing = own is not None and inner.signature == error.signature
        place = f"the query {goal}" if missing else where_in(error.location, text).removeprefix(" in ")
        problem = unknown("predicate", error.signature, predicates or ())
        raise UserError(f"{problem} (in {place})" if place else str(problem)) from error
    except NegativeCycle as error:
        where = where_in(error.location, text)
        raise Cycle(f"a rule must not depend on its own negation, got one that does{where}; break it") from error
    except NonGroundQuery as error:
        raise UserError(f"a query must have answers without variables, got {goal}; bind them in its rules") from error
    except ProbLogError as error:
        message = re.sub(r"'/[^']*/([^/']+)'", r"'\1'", " ".join(str(error.base_message).split())).rstrip(".")
        where = where_in(error.location, text)
        raise UserError(f"ProbLog cannot ground {goal or 'the program'}: {message}{where}; correct it") from error
    except RecursionError as error:
        raise UserError(
            f"grounding must end, got too deep a recursion in {goal or 'the program'}; bound it, or use shorter terms"
        ) from error
    except Exception as error:  # problog stumbles over some programs; the user needs to know over which part
        message = " ".join(f"{type(error).__name__} {error}".split())
        raise UserError(f"ProbLog cannot read {goal or f'the {what}'}: {message}; simplify it") from error
    finally:
        sys.setrecursionlimit(limit)


def shown(term: Any) -> str:
    """A term as a message repeats it."""
    text = str(term)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


def where_in(location: Any, text: str) -> str:
    """The line that problog points at, for the end of a message."""
    if not isinstance(location, tuple) or len(location) != 3 or location[0] is not None:
        return ""
    lines = text.split("\n")
    line = location[1]
    return f" in line {line}: {shown(lines[line - 1].strip())}" if 0 < line <= len(lines) else ""


def _syntax_error(error: Any, text: str, what: str) -> UserError:
    message = error.base_message[0].lower() + error.base_message[1:]
    _, line, column = error.location
    column += line == 1  # problog counts the columns of the first line from 0, of the others from 1
    lines = text.split("\n")
    written = shown(lines[min(line, len(lines)) - 1].strip())
    place = f"line {line}, column {column}" if what == "program" else f"column {column}"
    advice = "end every clause with a period" if message.startswith("incomplete") else "correct it"
    return UserError(f"the {what} must be ProbLog, got a syntax error in {place} ({message}): {written}; {advice}")
