"""Which of several queries is observed: given for each group, as one, as probabilities, or not at all."""

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from gedi.errors import UserError
from gedi.logic.arguments import items, shown


def observed(log_p: Tensor, answers: Tensor) -> Tensor:
    r"""``log sum_q a_q P(q)`` of each group: the probability of what was observed.

    Args:
        log_p: log-probability of each query, (..., groups, queries).
        answers: numbers of queries, (groups,), -1 where nothing was observed: then any of them may hold. Or a, how
            likely it is that what was seen would be seen if the query holds, (groups, queries).
    """
    if not isinstance(answers, Tensor):
        raise UserError(f"answers must be a tensor, got {type(answers).__name__}; constraint.numbered(...) makes one")
    queries, groups = log_p.shape[-1], log_p.shape[-2] if log_p.dim() > 1 else 1
    if answers.is_floating_point():
        if answers.shape != (groups, queries):
            raise UserError(
                f"soft answers must be (groups, queries), here ({groups}, {queries}), got {tuple(answers.shape)}"
            )
        weights = answers.to(log_p)
        possible = weights > 0
        logs = torch.where(possible, torch.where(possible, weights, 1.0).log(), -torch.inf)
        return _log_sum(log_p + logs)
    if answers.shape != (groups,) or (len(answers) and not -1 <= int(answers.min()) <= int(answers.max()) < queries):
        raise UserError(
            f"answers must be one number of a query for each of {groups} groups, -1 to {queries - 1}, got "
            f"{tuple(answers.shape)} of {shown(answers.flatten()[:5].tolist())}"
        )
    chosen = log_p.gather(-1, answers.clamp_min(0).expand(log_p.shape[:-1])[..., None])[..., 0]
    missing = answers < 0
    if not bool(missing.any()):
        return chosen
    return torch.where(missing, _log_sum(log_p).clamp_max(0.0), chosen)


def _log_sum(x: Tensor) -> Tensor:
    """``logsumexp`` over the last dimension, whose gradient is 0 where nothing is possible."""
    nothing = torch.isneginf(x).all(dim=-1, keepdim=True)
    return torch.where(nothing[..., 0], -torch.inf, torch.where(nothing, 0.0, x).logsumexp(dim=-1))


def numbers_of_answers(given: Sequence[Any] | Tensor, queries: Sequence[str], answers: Sequence[Any]) -> Tensor:
    """Answers as the numbers of their queries, -1 for None; or probabilities, checked."""
    if isinstance(given, Tensor) and given.is_floating_point() and given.dim() == 2:
        fits = given.shape[1] == len(queries) and bool(((given >= 0) & (given <= 1)).all())
        if not fits or not bool((given > 0).any(dim=1).all()):
            raise UserError(
                f"soft answers must be (groups, {len(queries)} answers), each from 0 to 1 and not all 0, got "
                f"{tuple(given.shape)}"
            )
        return given
    number: dict[Any, int] = {text: k for k, text in enumerate(queries)}
    number |= {answer: k for k, answer in enumerate(answers)}
    rows = items(given, "answers must be a list, one for each group or None")
    for i, answer in enumerate(rows):
        if answer is not None and (not isinstance(answer, Hashable) or answer not in number):
            raise UserError(
                f"answer {i} must be one of {', '.join(map(str, answers[:8]))}{', ...' * (len(answers) > 8)}, or None, "
                f"got {shown(answer)}"
            )
    return torch.tensor([-1 if answer is None else number[answer] for answer in rows], dtype=torch.long)


def answers_of(queries: Sequence[str]) -> list[Any]:
    """What each query stands for: the argument in which all of them differ, or its text.

    Example:
        >>> answers_of(["sum(a,b,0)", "sum(a,b,1)"]), answers_of(["wet", "cold"])
        ([0, 1], ['wet', 'cold'])
    """
    taken = [_parts(query) for query in queries]
    if len({(name, len(arguments)) for name, arguments in taken}) == 1 and taken[0][1]:
        columns = list(zip(*(arguments for _, arguments in taken), strict=True))
        differing = [column for column in columns if len(set(column)) > 1]
        if len(differing) == 1 and len(set(differing[0])) == len(queries):
            return [int(x) if x.removeprefix("-").isdecimal() else x for x in differing[0]]
    return list(queries)


def _parts(query: str) -> tuple[str, list[str]]:
    """Name and arguments of an atom as text; commas within brackets do not separate."""
    name, bracket, rest = query.partition("(")
    if not bracket or not rest.endswith(")"):
        return query, []
    arguments, depth = [""], 0
    for letter in rest[:-1]:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += letter
    return name, [argument.strip() for argument in arguments]
