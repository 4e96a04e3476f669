"""Ground programs by brute force: every world, every rule, until nothing changes."""

import itertools
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

Literal = tuple[str, bool]
Rule = tuple[str, tuple[Literal, ...]]


@dataclass
class Ground:
    """A ground program.

    ``inputs[name]`` holds the atom that each value of a neural input makes true (None: no atom), ``fixed`` the
    atom and probability of each outcome of a plain choice (the rest makes nothing true), ``strata`` the rules:
    negation speaks of earlier strata only.
    """

    inputs: dict[str, list[str | None]]
    fixed: list[list[tuple[str, float]]] = field(default_factory=list)
    strata: list[list[Rule]] = field(default_factory=list)

    def worlds(self) -> list[tuple[tuple[int, ...], float, set[str]]]:
        """The values of the inputs, the log-probability of the plain choices, and what is true."""
        outcomes = [[*choice, (None, 1.0 - sum(p for _, p in choice))] for choice in self.fixed]
        result = []
        for values in itertools.product(*(range(len(atoms)) for atoms in self.inputs.values())):
            for chosen in itertools.product(*outcomes):
                log_p = sum(math.log(p) if p > 1e-12 else -math.inf for _, p in chosen)
                facts = {atoms[k] for atoms, k in zip(self.inputs.values(), values, strict=True)}
                true = {atom for atom in (*facts, *(atom for atom, _ in chosen)) if atom is not None}
                if log_p > -math.inf:
                    result.append((values, log_p, self._closed(true)))
        return result

    def _closed(self, true: set[str]) -> set[str]:
        for stratum in self.strata:
            size = -1
            while size < len(true):
                size = len(true)
                true |= {head for head, body in stratum if all((atom in true) == sign for atom, sign in body)}
        return true


def log_prob(program: Ground, query: str, evidence: list[Literal], log_p: list[Tensor]) -> Tensor:
    """log P(query | evidence) from the log-probabilities of the inputs, (groups, values) each -> (groups,)."""
    both, given = [], []
    for values, weight, true in program.worlds():
        if all((atom in true) == sign for atom, sign in evidence):
            term = sum((p[:, k] for p, k in zip(log_p, values, strict=True)), torch.zeros_like(log_p[0][:, 0])) + weight
            given.append(term)
            if query in true:
                both.append(term)
    return torch.stack(both).logsumexp(0) - (torch.stack(given).logsumexp(0) if evidence else 0.0)


def verdict(program: Ground, query: str, evidence: list[Literal]) -> str:
    """possible, never, always, or contradiction (of the evidence)."""
    held = [true for _, _, true in program.worlds() if all((atom in true) == sign for atom, sign in evidence)]
    if not held:
        return "contradiction"
    answers = {query in true for true in held}
    return "possible" if len(answers) == 2 else "always" if True in answers else "never"
