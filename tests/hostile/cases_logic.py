"""Rules, memberships and probabilities that must be refused."""

import functools
import itertools
import math
from pathlib import Path

import numpy as np
import torch
from calls import Called, Typed

from gedi.logic import (
    Constraint,
    align,
    all_different,
    at_most_k,
    decode,
    exactly_k,
    maximum,
    minimum,
    sorted_,
    sums_to,
)
from gedi.objectives.constraint import Rule
from gedi.objectives.objective import Context
from gedi.rules import check_constraint

PROGRAM = "nn(net,[X],Y,[0,1,2]) :: digit(X,Y).\nadds(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.\n"
PAIRS = [range(3)] * 2
NAN = float("nan")
from_predicate, from_cnf, from_problog = Constraint.from_predicate, Constraint.from_cnf, Constraint.from_problog


@functools.cache
def rule() -> Constraint:
    """Three symbols that add up."""
    return from_predicate(lambda a, b, c: a + b == c, [range(3)] * 3)


@functools.cache
def uneven() -> Constraint:
    return from_predicate(lambda a, b: a < b, [range(2), range(3)])


@functools.cache
def several() -> Constraint:
    """A program with two queries."""
    return from_problog(PROGRAM, ["adds(a,b,1)", "adds(a,b,2)"])


def even(*shape: int) -> torch.Tensor:
    """Log-probabilities that prefer nothing."""
    return torch.zeros(*(shape or (4, 3, 3))).log_softmax(-1)


def automaton(n=3, init=0, step=lambda s, v: (s + v) % 2, accept=(0,), domain=(0, 1), **limits) -> Constraint:
    return Constraint.from_automaton(n, init, step, accept, domain, **limits)


PROBABILITIES = {
    "nested lists": (lambda: even().tolist(), "log_p must be a tensor, or a list of tensors, got a list that holds"),
    "an array": (lambda: even().numpy(), "log_p must be a tensor, got a ndarray; use torch.tensor(...)"),
    "nothing": (lambda: None, "log_p must be a tensor, got None"),
    "whole numbers": (lambda: torch.zeros(4, 3, 3, dtype=torch.long), "floating-point numbers, got torch.int64"),
    "truth values": (lambda: torch.ones(4, 3, 3, dtype=torch.bool), "floating-point numbers, got torch.bool"),
    "complex numbers": (lambda: torch.zeros(4, 3, 3, dtype=torch.complex64), "floating-point numbers, got torch.comp"),
    "a sparse tensor": (lambda: torch.zeros(4, 3, 3).to_sparse(), "a dense tensor that holds its values"),
    "a tensor without values": (lambda: torch.zeros(4, 3, 3, device="meta"), "a dense tensor that holds its values"),
    "one dimension": (lambda: torch.zeros(9), "(groups, 3 variables, 3 values), got (9,)"),
    "no dimension": (lambda: torch.tensor(0.0), "(groups, 3 variables, 3 values), got ()"),
    "too many values": (lambda: even(4, 3, 4), "got (4, 3, 4)"),
    "too few tensors": (lambda: [even(4, 3)] * 2, "a tensor (groups, values) for each of [3, 3, 3] values"),
    "no tensors": (list, "a tensor (groups, values) for each of [3, 3, 3] values, got []"),
    "tensors and numbers": (lambda: [even(4, 3), even(4, 3), 0.5], "got a list that holds a float"),
    "tensors of two devices": (lambda: [even(4, 3)] * 2 + [torch.zeros(4, 3, device="meta")], "holds its values"),
    "logits": (lambda: torch.arange(36.0).view(4, 3, 3), "add up to 11.1073 instead of 1; use log_softmax"),
    "probabilities for logs": (lambda: even().exp(), "add up to 4.18684 instead of 1"),
    "positive logs": (lambda: torch.ones(4, 3, 3), "add up to 8.15485 instead of 1"),
    "NaN": (lambda: torch.full((4, 3, 3), NAN), "got NaN for variable x1 of group 0"),
    "infinity": (lambda: torch.full((4, 3, 3), math.inf), "add up to"),
    "nothing possible": (lambda: torch.full((4, 3, 3), -math.inf), "add up to 0 instead of 1"),
}
MEMBERSHIPS = {
    "nested lists": (lambda: even().tolist(), "must be a tensor, got a list"),
    "whole numbers": (lambda: torch.ones(4, 3, 3, dtype=torch.long), "floating-point numbers"),
    "NaN": (lambda: torch.full((4, 3, 3), NAN), "must"),
    "no groups": (lambda: torch.zeros(0, 3, 3), "group"),
    "two dimensions": (lambda: torch.zeros(3, 3), "(3, 3)"),
}

CALLS = [
    *(
        Called(f"log_prob of {name}", lambda _, make=make: rule().log_prob(make()), says)
        for name, (make, says) in PROBABILITIES.items()
    ),
    Called(
        "log_prob with probability in the padding",
        lambda _: uneven().log_prob(even(4, 2, 3)),
        "variable x1 of group 0 add up to 0.666667",
    ),
    Called("log_prob of several queries, unnormalised", lambda _: several().log_prob(torch.zeros(1, 2, 3)), "to 3"),
    Called("probability of NaN", lambda _: rule().probability(torch.full((1, 3, 3), NAN)), "got nan"),
    Called("probability below 0", lambda _: rule().probability(torch.full((1, 3, 3), -0.1)), "at least 0, got -0.1"),
    Called("probability of twos", lambda _: rule().probability(torch.full((1, 3, 3), 2.0)), "add up to 6"),
    Called("posterior of NaN", lambda _: rule().posterior(torch.full((1, 3, 3), NAN)), "below infinity, got nan"),
    Called("posterior of a list", lambda _: rule().posterior([even(1, 3)] * 3), "must be a tensor, got a list"),
    *(
        Called(f"align of {name}", lambda _, make=make: align(rule(), make()), says)
        for name, (make, says) in MEMBERSHIPS.items()
    ),
    *(
        Called(f"decode of {name}", lambda _, make=make: decode(rule(), make()), says)
        for name, (make, says) in MEMBERSHIPS.items()
    ),
    Called("align of logits", lambda _: align(rule(), torch.zeros(4, 3, 3)), "add up to 3 instead of 1"),
    Called("decode of log memberships", lambda _: decode(rule(), even()), "finite and at least 0, got -1.09"),
    Called("align without a rule", lambda _: align(lambda a: a, even()), "align needs a Constraint, got function"),
    Called("align of two queries", lambda _: align(several(), even(4, 2, 3)), "align needs one query: choose one"),
    Called("align with half a restart", lambda _: align(rule(), even(), restarts=0.5), "at least 1, got 0.5"),
    Called("align with a seed", lambda _: align(rule(), even(), generator=3), "must be a torch.Generator, got int"),
    Called(
        "second derivatives of KLay's evaluator, or its absence",
        lambda _: torch.autograd.grad(
            rule().with_backend("klay").log_prob(leaf := even().requires_grad_()).sum(), leaf, create_graph=True
        ),
        "'layered'",
    ),
    Called("a backend that is not there", lambda _: rule().with_backend(["klay"]).log_prob(even()), "unknown backend"),
    # --- rules in Python
    Called("a rule that is no function", lambda _: from_predicate("a + b", PAIRS), "must be a function"),
    Called("a rule that gives arrays", lambda _: from_predicate(lambda *v: np.ones(2), PAIRS), "True or Fa"),
    Called("a rule that fails", lambda _: from_predicate(lambda a, b: {}[a], PAIRS), "failed: KeyError: 0"),
    Called(
        "a large rule about a list",
        lambda _: from_predicate(lambda *v: v[0] == [1], [range(10)] * 7),
        "unhashable type: 'list'",
    ),
    Called("no domains", lambda _: from_predicate(lambda: True, []), "at least one variable"),
    Called("an empty domain", lambda _: from_predicate(lambda a: a, [[]]), "at least one, got []"),
    Called("a number for domains", lambda _: from_predicate(lambda a: a, 3), "domains must be a list"),
    Called("a domain twice the same", lambda _: from_predicate(lambda a: a, [[1, 1]]), "different values"),
    Called("a domain of lists", lambda _: from_predicate(lambda a: a, [[[1], [2]]]), "told apart"),
    Called("a domain of tensors", lambda _: from_predicate(lambda a: a, [[torch.ones(2)]]), "plain values"),
    Called("a domain with no end", lambda _: sorted_(2, itertools.count()), "values"),
    Called("a domain of a thousand million", lambda _: sorted_(2, range(10**9)), "values"),
    Called("a limit of NaN", lambda _: from_predicate(lambda a, b: a == b, PAIRS, time_limit=NAN), "time_"),
    Called("a limit of words", lambda _: automaton(size_limit="large"), "size_limit must be a number, at least 0"),
    Called("the minimum of a word and a number", lambda _: minimum("a", 1), "minimum needs two values that can be"),
    Called("the maximum of arrays", lambda _: maximum(np.ones(3), 1), "maximum needs two values that can be"),
    # --- automata
    Called("an automaton with list states", lambda _: automaton(step=lambda s, v: [v]), "states must be hashable"),
    Called("tuples of lists as states", lambda _: automaton(step=lambda s, v: ([v],)), "states must be hashable"),
    Called("unhashable good states", lambda _: automaton(accept=[[0]]), "good states must be hashable"),
    Called("a number for good states", lambda _: automaton(accept=0), "accept must be a function"),
    Called("good states with no end", lambda _: automaton(accept=itertools.count()), "give a function of the state"),
    Called("an accept that says arrays", lambda _: automaton(accept=lambda s: np.ones(2)), "say True or False"),
    Called("a step that is no function", lambda _: automaton(step=3), "step must be a function"),
    Called("a step of one argument", lambda _: automaton(step=lambda s: s), "step failed at (0, 0): TypeError"),
    Called("half a variable", lambda _: automaton(n=2.5), "got n=2.5"),
    Called("a thousand million variables", lambda _: automaton(n=10**9), "or raise size_limit"),
    # --- clauses and programs
    Called("a number for clauses", lambda _: from_cnf(5), "clauses must be a list"),
    Called("clauses of words", lambda _: from_cnf([["a"]]), "clause 1 must be whole numbers"),
    Called("clauses of truth values", lambda _: from_cnf([[True]]), "clause 1 must be whole numbers"),
    Called("half a Boolean", lambda _: from_cnf([[1]], 1.5), "variables must be a number, or a list"),
    Called("a program of bytes", lambda _: from_problog(PROGRAM.encode(), "adds(a,b,1)"), "got bytes"),
    Called("a program that is not there", lambda _: from_problog(Path("no.pl"), "q"), "'no.pl' is not there"),
    Called("a program that is a folder", lambda here: from_problog(here, "q"), "is not there"),
    Called("a number for a query", lambda _: from_problog(PROGRAM, 3), "query must be text or a list"),
    Called("queries of numbers", lambda _: from_problog(PROGRAM, [1, 2]), "query must be text or a list"),
    Called("a word for variables", lambda _: from_problog(PROGRAM, "adds(a,b,1)", variables="ab"), "variab"),
    # --- what is asked of a rule
    Called("satisfied by a number", lambda _: rule().is_satisfied(5), "values must be rows of 3"),
    Called("satisfied by rows of two", lambda _: rule().is_satisfied([[0, 1]]), "values must be rows of 3"),
    Called("half a limit of solutions", lambda _: rule().solutions(0.5), "limit must be a whole number"),
    Called("places that are words", lambda _: rule().on("abc", [range(3)] * 4), "places must be a list of whole"),
    Called("a rule and a number", lambda _: rule().conjoin(3), "combined with another constraint, got 3"),
    Called("a rule or something else", lambda _: rule().disjoin(uneven()), "over the same variables"),
    Called("too small a limit", lambda _: rule().conjoin(~rule(), size_limit=1), "(a.conjoin(b) is a & b and takes"),
    Called("a query that is not there", lambda _: several()[2.5], "no query 2.5; there are: adds(a,b,1), adds(a,b,2)"),
    Called("a circuit that is none", lambda _: Constraint(None, PAIRS), "a circuit was expected, got None"),
    Called("a circuit over other values", lambda _: Constraint(rule().circuit, PAIRS), "over 9 values needs domains"),
    Called("all different of words", lambda _: all_different("3", range(3)), "n must be a whole number"),
    Called("a sum of a list", lambda _: sums_to(2, range(3), total=[1]), "total must be a number"),
    Called("exactly some", lambda _: exactly_k(3, "some", [False, True]), "k must be a whole number"),
    Called("at most fewer than none", lambda _: at_most_k(3, -1, [False, True]), "at least 0, got -1"),
    # --- training
    Called("training on two queries", lambda _: check_constraint(several(), 3, 2, 10), "training needs one query"),
    Called(
        "a training term of two queries",
        lambda _: Rule(weight=1).bind(Context(3, 8, 0.1, constraint=several())),
        "training needs one query",
    ),
    Called(
        "a training term of no rule",
        lambda _: Rule(weight=1).bind(Context(3, 8, 0.1)),
        "needs a constraint: see constra",
    ),
    Called("training on a function", lambda _: check_constraint(max, 3, 2, 10), "must be a gedi.logic.Constraint"),
    Typed(
        "a program that is not there in a run",
        "run digits-addition --set constraint.rule=problog --set constraint.path=one.pl",
        "constraint.path must name a file, but 'one.pl' is not there",
    ),
    Typed(
        "a program that is no text in a run",
        "run digits-addition --set constraint.rule=problog --set constraint.path=two.pl",
        "cannot be read as UTF-8 text",
        {"two.pl": b"\xff\xfe\x00a"},
    ),
]
