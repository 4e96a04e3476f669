"""What the circuit of a program is over: the inputs of its networks, and the choices that no network makes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gedi.errors import UserError, unknown

_CERTAIN = 1e-9  # probabilities this near to 0 or 1 are 0 or 1


@dataclass(frozen=True)
class Input:
    """What a network reads: its output is one variable, whichever clause asks for it."""

    net: str
    inputs: tuple[str, ...]

    @property
    def short(self) -> str:
        """The input alone."""
        return ",".join(self.inputs)

    @property
    def long(self) -> str:
        """The network and its input."""
        return f"{self.net}({self.short})"


def neural_atoms(formula: Any, domains: Sequence[tuple[Any, ...]]) -> dict[int, tuple[Input, int, int]]:
    """Input, domain and value of every neural atom of a formula."""
    from gedi.logic.problog_text import NEURAL, elements, python_value

    numbers = [{value: k for k, value in enumerate(domain)} for domain in domains]
    atoms: dict[int, tuple[Input, int, int]] = {}
    domain_of: dict[Input, int] = {}
    for node, content, kind in formula:
        if kind != "atom" or getattr(content.probability, "functor", None) != NEURAL:
            continue
        net, inputs, domain, value = content.probability.args
        key = Input(str(net), tuple(str(term) for term in elements(inputs)))
        other = domain_of.setdefault(key, int(domain))
        if other != int(domain):
            raise UserError(
                f"one input must have one domain, got {list(domains[other])} and {list(domains[int(domain)])} for "
                f"{key.long}; use two networks"
            )
        atoms[node] = (key, other, numbers[other][python_value(value)])
    return atoms


def positions(terms: Sequence[Any]) -> dict[str, int]:
    """Where each term first appears in the queries, from left to right."""
    found: dict[str, int] = {}
    stack = list(reversed(terms))
    while stack:
        term = stack.pop()
        found.setdefault(str(term), len(found))
        stack.extend(reversed(getattr(term, "args", ())))
    return found


def names_of(inputs: Sequence[Input]) -> tuple[str, ...]:
    """The name of each input, with its network where two read the same."""
    shorts = [key.short for key in inputs]
    return tuple(key.long if shorts.count(key.short) > 1 else key.short for key in inputs)


def as_wished(
    names: list[str], domain_of: dict[Input, int], nets: dict[str, set[int]]
) -> tuple[list[Input], tuple[str, ...]]:
    """The inputs that the user named, in this order."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise UserError(f"variables must differ, got {twice!r} twice; remove one")
    inputs = []
    for name in names:
        spelt = name.replace(" ", "")
        matching = [key for key in domain_of if spelt in (key.short.replace(" ", ""), key.long.replace(" ", ""))]
        if len(matching) > 1:
            raise UserError(
                f"a variable must be one neural input, got {name!r} for {' and '.join(k.long for k in matching)}; "
                f"write the network too"
            )
        inputs.append(matching[0] if matching else _unread(name, domain_of, nets))
    missing = [key for key in domain_of if key not in inputs]
    if missing:
        raise UserError(
            f"variables must name every neural input of the query, got {names} without "
            f"{', '.join(names_of(missing))}; add what is missing"
        )
    return inputs, tuple(names)


def _unread(name: str, domain_of: dict[Input, int], nets: dict[str, set[int]]) -> Input:
    """An input that no rule reads: it has a column all the same."""
    net, bracket, rest = name.partition("(")
    if bracket and net in nets and name.endswith(")"):
        key = Input(net, tuple(rest[:-1].split(",")))
    elif len(nets) == 1:
        key = Input(next(iter(nets)), tuple(name.split(",")))
    else:
        raise UserError(
            f"{unknown('variable', name, [key.long for key in domain_of])}; to add an input that no rule reads write "
            f"its network too, as {next(iter(nets))}({name})"
        )
    if len(nets[key.net]) > 1:
        raise UserError(f"a variable that no rule reads must have one domain, got {name!r} of {len(nets[key.net])}")
    return key


def plain_choices(
    formula: Any, nodes: Sequence[int]
) -> tuple[tuple[tuple[float, ...], ...], dict[int, tuple[int, int]], dict[int, bool]]:
    """The probabilities of plain choices; variable and value of their atoms; atoms that are certain."""
    groups: dict[Any, list[tuple[int, int, float]]] = {}
    for node in nodes:
        content = formula.get_node(node)
        if type(content).__name__ == "atom":
            group, choice = (
                (content.identifier, 0) if content.group is None else (content.group, content.identifier[-1])
            )
            groups.setdefault(group, []).append((choice, node, _probability(content)))
    fixed: list[tuple[float, ...]] = []
    choices: dict[int, tuple[int, int]] = {}
    constants: dict[int, bool] = {}
    for listed in groups.values():
        listed.sort()
        rest = 1.0 - sum(p for _, _, p in listed)
        if rest < -_CERTAIN:
            raise UserError(
                f"the probabilities of an annotated disjunction must sum to at most 1, got {1 - rest:g}; correct them"
            )
        constants |= {node: False for _, node, p in listed if p <= _CERTAIN}
        possible = [(node, p) for _, node, p in listed if p > _CERTAIN]
        if len(possible) == 1 and rest < _CERTAIN:
            constants[possible[0][0]] = True
        elif possible:
            choices |= {node: (len(fixed), k) for k, (node, _) in enumerate(possible)}
            fixed.append(tuple(p for _, p in possible) + ((rest,) if rest >= _CERTAIN else ()))
    return tuple(fixed), choices, constants


def _probability(atom: Any) -> float:
    try:
        p = float(atom.probability.value)
    except Exception as error:
        raise UserError(f"a probability must be a number, got {atom.probability} for {atom.name}") from error
    if not -_CERTAIN <= p <= 1 + _CERTAIN:
        raise UserError(f"a probability must be between 0 and 1, got {p:g}; correct it")
    return p
