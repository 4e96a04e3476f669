"""Circuits: DeepProbLog, KLay's evaluator and sums written by hand against ours, and what compiling costs."""

import importlib.util
import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import reduce

import torch
from torch import Tensor, nn

from gedi.bench.findings import Figure, Finding, LeftOut, speedup
from gedi.bench.timing import Effort, in_turns, with_children
from gedi.logic import Constraint, all_different, sums_to

_DIGITS = "nn(net,[X],Y,[0,1,2,3,4,5,6,7,8,9]) :: digit(X,Y).\n"
ADDITION = _DIGITS + "triple(X,Y,Z) :- digit(X,A), digit(Y,B), digit(Z,C), C is A + B.\n"
_NUMBERS = (
    _DIGITS
    + """
total(Xs,Ys,Zs) :- carried(Xs,Ys,0,Zs).
carried([],[],C,[C]).
carried([X|Xs],[Y|Ys],C,[Z|Zs]) :-
    digit(X,A), digit(Y,B), S is A + B + C, Z is S mod 10, D is S // 10, carried(Xs,Ys,D,Zs).
"""
)
_GROUPS, _MANY = 20, 1000
_PAIRS = torch.tensor([(a, b) for a in range(10) for b in range(10 - a)]).t()


def logic(effort: Effort) -> Iterator[Finding]:
    """Forward and backward passes of several rules, and the seconds a program takes to become a circuit."""
    addition = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3)
    yield from _against_deepproblog(addition, effort)
    yield from _against_klay(addition, effort)
    yield from _against_hand_written(addition, effort)
    numbers(1)  # problog is imported once
    for n in (1, 4) if effort.small else (1, 2, 4, 8):
        with _nothing_remembered():
            began = with_children()  # programs are compiled in a process of their own
            made = numbers(n)
            seconds = with_children() - began
        yield Figure(f"compiling two {n}-digit numbers by ProbLog, {made.size} edges", seconds, "s")


def numbers(n: int) -> Constraint:
    """Two numbers of n digits whose sum is 1, 2, 3 and so on, digit by digit."""
    a, b = (",".join(f"{name}{i}" for i in range(n)) for name in "ab")
    total = ",".join(str((i + 1) % 10) for i in range(n))
    return Constraint.from_problog(_NUMBERS, f"total([{a}],[{b}],[{total},1])")


def sudoku() -> Constraint:
    """Four by four: rows, columns and blocks hold different values."""
    cells = [range(4)] * 16
    lines = [[4 * r + c for c in range(4)] for r in range(4)] + [[4 * r + c for r in range(4)] for c in range(4)]
    blocks = [[4 * (r + i) + c + j for i in (0, 1) for j in (0, 1)] for r in (0, 2) for c in (0, 2)]
    one = all_different(4, range(4))
    return reduce(lambda a, b: a & b, (one.on(places, cells) for places in lines + blocks))


def deepproblog_passes(logits: Tensor) -> Callable[[], None]:
    """Addition by DeepProbLog, its circuit cached, its network in one batch."""
    from deepproblog.engines import ExactEngine
    from deepproblog.model import Model
    from deepproblog.network import Network
    from deepproblog.query import Query
    from problog.logic import Constant, Term

    model = Model(ADDITION, [Network(nn.Softmax(dim=-1), "net", batching=True)], load=False)
    model.set_engine(ExactEngine(model), cache=True)
    model.add_tensor_source("x", {(Constant(i),): row for i, row in enumerate(logits.flatten(0, 1))})
    names = [Term(name) for name in "abc"]
    tensors = [Term("tensor", Term("x", Constant(i))) for i in range(3 * len(logits))]
    query = Term("triple", *names)
    batch = [Query(query, dict(zip(names, tensors[3 * i : 3 * i + 3], strict=True))) for i in range(len(logits))]

    def forward_and_backward() -> None:
        logits.grad = None
        found = torch.stack([next(iter(result.result.values())) for result in model.solve(batch)])
        (-found.log().mean()).backward(retain_graph=True)  # type: ignore[no-untyped-call]

    return forward_and_backward


def circuit_passes(constraint: Constraint, logits: Tensor) -> Callable[[], None]:
    """The same by our circuits."""

    def forward_and_backward() -> None:
        logits.grad = None
        (-constraint.log_prob(logits.log_softmax(-1), normalised=False).mean()).backward()  # type: ignore[no-untyped-call]

    return forward_and_backward


def convolution(logits: Tensor) -> Callable[[], None]:
    """Addition as somebody who knows the rule would write it: for each sum, the ways to it, one after another."""

    def forward_and_backward() -> None:
        logits.grad = None
        a, b, total = logits.log_softmax(-1).unbind(1)
        sums = [torch.logsumexp(a[:, : s + 1] + b[:, : s + 1].flip(1), dim=1) for s in range(10)]
        (-(torch.stack(sums, dim=1) + total).logsumexp(dim=1).mean()).backward()  # type: ignore[no-untyped-call]

    return forward_and_backward


def listed_pairs(logits: Tensor) -> Callable[[], None]:
    """The same over the 55 pairs at once."""

    def forward_and_backward() -> None:
        logits.grad = None
        a, b, total = logits.log_softmax(-1).unbind(1)
        ways = a[:, _PAIRS[0]] + b[:, _PAIRS[1]] + total[:, _PAIRS.sum(dim=0)]
        (-ways.logsumexp(dim=1).mean()).backward()  # type: ignore[no-untyped-call]

    return forward_and_backward


def _against_hand_written(addition: Constraint, effort: Effort) -> Iterator[Finding]:
    logits = _logits(addition, _MANY)
    both = {"convolution": convolution(logits), "pairs": listed_pairs(logits), "ours": circuit_passes(addition, logits)}
    turns = in_turns(both, effort)
    name = f"a + b = c, {_MANY} groups"
    yield speedup(turns, name, ("a dynamic program by hand", "convolution"), "ours", at_least=1 / 1.5)
    yield speedup(turns, f"{name}, by their pairs", ("a sum over 55 pairs by hand", "pairs"), "ours", at_least=1 / 1.5)


def _against_deepproblog(addition: Constraint, effort: Effort) -> Iterator[Finding]:
    name = f"a + b = c, {_GROUPS} groups"
    if importlib.util.find_spec("deepproblog") is None:
        yield LeftOut(f"{name}, against DeepProbLog", "not installed: pip install --no-deps deepproblog")
        return
    logits = _logits(addition, _GROUPS)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # it prints and warns
        warnings.simplefilter("ignore")
        turns = in_turns(
            {
                "rule": circuit_passes(addition, logits),
                "program": circuit_passes(Constraint.from_problog(ADDITION, "triple(a,b,c)"), logits),
                "deepproblog": deepproblog_passes(logits),
            },
            effort,
        )
    yield speedup(turns, f"{name}, the same program", ("DeepProbLog", "deepproblog"), "program", at_least=1.0)
    yield speedup(turns, f"{name}, the rule in Python", ("DeepProbLog", "deepproblog"), "rule", at_least=1.0)


def _against_klay(addition: Constraint, effort: Effort) -> Iterator[Finding]:
    if importlib.util.find_spec("klay") is None:
        yield LeftOut("circuits against KLay", "klaycircuits is not installed, and has no wheel for every machine")
        return
    rules = {
        "a + b = c": addition,
        "12 digits sum to 40": sums_to(12, range(10), total=40),
        "4 x 4 sudoku": sudoku(),
        "two 4-digit numbers by ProbLog": numbers(4),
    }
    for name, rule in rules.items():
        for groups in (_GROUPS, 200, _MANY):
            logits = _logits(rule, groups)
            both = {backend: circuit_passes(rule.with_backend(backend), logits) for backend in ("layered", "klay")}
            turns = in_turns(both, effort)
            yield speedup(
                turns, f"{name}, {rule.size} edges, {groups} groups", ("KLay", "klay"), "layered", at_least=1.0
            )


def _logits(constraint: Constraint, groups: int) -> Tensor:
    g = torch.Generator().manual_seed(0)
    return torch.randn(groups, len(constraint.sizes), max(constraint.sizes), generator=g).requires_grad_()


@contextmanager
def _nothing_remembered() -> Iterator[None]:
    """Without the cache of compiled circuits."""
    before = os.environ.get("GEDI_CACHE")
    os.environ["GEDI_CACHE"] = ""
    try:
        yield
    finally:
        if before is None:
            del os.environ["GEDI_CACHE"]
        else:
            os.environ["GEDI_CACHE"] = before
