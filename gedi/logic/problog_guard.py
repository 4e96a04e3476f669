"""What a ProbLog program may load: it is data from a stranger, and problog would run Python for it.

Two walls. What the text plainly asks for is refused before anything runs; and the database that problog runs on finds
no file but the libraries listed here, however a goal comes to be called.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from gedi.errors import UserError
from gedi.logic.problog_quiet import quiet_import

with quiet_import():
    import problog
    from problog.clausedb import ClauseDB
    from problog.logic import And, Not, Or, Term, unquote

FILES, PYTHON = "files", "python"

# Rules, and two modules of plain functions on lists and texts: read one by one, they load no other code and open no
# file. Not among them: assert, record and aproblog (state shared between calls), db (files), nlp4plp (a parser's).
_LISTED = ("aggregate", "apply", "builtin", "collect", "control", "cut", "lists", "scope", "string")
_FOLDER = Path(problog.__file__).parent / "library"
LIBRARIES = frozenset(str(_FOLDER / name) for name in (*(f"{name}.pl" for name in _LISTED), "lists.py", "string.py"))

_LOADING = {
    "consult/1": 0,
    "_consult/2": 1,
    "use_module/1": 0,
    "use_module/2": 0,
    "_use_module/2": 1,
    "_use_module/3": 1,
}

# These import a module by a name that any folder may hold, or start other compilers outside of every limit.
WITHHELD = (
    *(("set_state", 1), ("reset_state", 0), ("check_state", 1), ("condition", 1), ("probabilityX", 1)),
    *(("subquery", n) for n in (2, 3, 5)),
    *(("subquery_in_scope", n) for n in (3, 4, 6)),
)


def refused(needed: str, loaded: Any, where: str = "") -> UserError:
    """What to say of a program that loads what it may not."""
    text = str(loaded)
    shown = text if len(text) <= 80 else f"{text[:76]} ..."
    return UserError(
        f"a ProbLog program must load nothing but library({', '.join(_LISTED)}), got {shown}{where}; if you trust its "
        f"author, give from_problog allow=({needed!r},)"
    )


def refuse_at_sight(body: Any, allowed: Collection[str], where: str) -> None:
    """Raise for the body of a clause, a directive or a query that plainly loads what it may not."""
    for goal in _goals(body):
        if getattr(goal, "signature", None) == "./2" and FILES not in allowed:  # :- ['file'].
            raise refused(FILES, goal, where)
        for term in _terms(goal):
            place = _LOADING.get(term.signature)
            needed = None if place is None else _needed(term.args[place])
            if needed is not None and needed not in allowed:
                raise refused(needed, term, where)


def _goals(body: Any) -> Iterator[Any]:
    """The parts of a body that are called."""
    stack = [body]
    while stack:
        part = stack.pop()
        if isinstance(part, And | Or | Not):
            stack.extend(part.args)
        else:
            yield part


def _terms(term: Any) -> Iterator[Any]:
    """A term and every term inside it: what is called may be an argument of what calls it."""
    stack = [term]
    while stack:
        part = stack.pop()
        if isinstance(part, Term):
            yield part
            stack.extend(part.args)


def _needed(name: Any) -> str | None:
    """The permission that loading a name needs; None for the libraries."""
    if not isinstance(name, Term) or name.is_var():
        return None  # known only when it runs
    if name.signature != "library/1":
        return PYTHON if unquote(str(name)).endswith(".py") else FILES
    path = _FOLDER / unquote(str(name.args[0]))
    if {str(path), f"{path}.pl"} & LIBRARIES:
        return None
    return FILES if path.with_name(f"{path.name}.pl").exists() else PYTHON


class Guard:
    """What one program may load, and whether it tried more; a rule may catch the refusal, the program may not."""

    def __init__(self, allowed: Collection[str]) -> None:
        self.allowed = allowed
        self.refusal: UserError | None = None

    def require(self, permission: str, loaded: Any) -> None:
        """Raise unless something of this kind may be loaded."""
        if permission not in self.allowed:
            self.refusal = refused(permission, loaded)
            raise self.refusal

    def withheld(self, name: str) -> Any:
        """A builtin that refuses to be called."""

        def refuse(*arguments: Any, **rest: Any) -> Any:
            self.refusal = UserError(f"a ProbLog program must do without {name}, got a call of it; use rules instead")
            raise self.refusal

        return refuse

    def check(self) -> None:
        """Raise for what was refused on the way."""
        if self.refusal is not None:
            raise self.refusal


class Guarded(ClauseDB):  # type: ignore[misc]
    """problog's database, which finds no file that it may not load."""

    def __init__(self, guard: Guard, builtins: Any = None, parent: Any = None) -> None:
        self.guard = guard  # first: problog loads a library of its own
        super().__init__(builtins=builtins, parent=parent)

    def extend(self) -> "Guarded":
        """A database on top of this one; findall and its like run on it."""
        above = Guarded(self.guard, self.engine.get_builtins(), self)
        above.engine = self.engine
        return above

    def resolve_filename(self, filename: Any) -> str:
        """The path of whatever is loaded: everything that problog loads passes here."""
        path = str(super().resolve_filename(filename))
        if path not in LIBRARIES:
            self.guard.require(PYTHON if path.endswith(".py") else FILES, filename)
        return path

    def load_external_module(self, filename: str) -> Any:
        """Run a Python module."""
        if filename not in LIBRARIES:
            self.guard.require(PYTHON, filename)
        return super().load_external_module(filename)
