import itertools
import math
import re
import subprocess
import sys
import time

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problog_oracle import Ground, Literal, log_prob, verdict

from gedi.errors import UserError
from gedi.logic.evaluate import Layered
from gedi.logic.limits import Budget, Limits
from gedi.logic.problog import Program, compile_here, compile_program

NET = "nn(net,[X],Y,[0,1,2]) :: digit(X,Y).\n"
TEN = "nn(net,[X],Y,[0,1,2,3,4,5,6,7,8,9]) :: digit(X,Y).\n"
CARRY = f"""{TEN}
col(A,B,Cin,S,Cout) :- digit(A,X), digit(B,Y), T is X+Y+Cin, S is T mod 10, Cout is T // 10.
add([],[],[],C,C).
add([A|As],[B|Bs],[S|Ss],Cin,C) :- col(A,B,Cin,S,C1), add(As,Bs,Ss,C1,C).
"""
FAST = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


def compiled(program: str, query=None, variables=None, seconds=60.0, size=1_000_000) -> Program:
    return compile_program(program, query, variables, Limits(seconds, size))


def compiled_here(program: str, query=None, variables=None) -> Program:
    return compile_here(program, query, variables, Budget(Limits(), "ask a smaller query"))


def count(program: Program, root: int = 0) -> int:
    return program.circuit.counts[program.circuit.roots[root]]


def value(program: Program, log_p: list[torch.Tensor]) -> torch.Tensor:
    """(groups, queries) from the log-probabilities of every neural input."""
    groups = len(log_p[0])
    fixed = [torch.tensor(p, dtype=torch.float64).log().expand(groups, -1) for p in program.fixed]
    out = Layered(program.circuit)(torch.cat([*log_p, *fixed], dim=1))
    return out[:, :-1] - out[:, -1:] if program.conditional else out


def assert_same(program: Ground, text: str, query: str, evidence: list[Literal], seed: int, named: list[str] | None):
    """The compiled program agrees with the worlds: values, gradients, and what it refuses."""
    expected = verdict(program, query, evidence)
    try:
        result, refusal = compiled_here(text, query, named), ""
    except UserError as error:
        refusal = str(error)
    if "must involve a neural input" in refusal:
        assert _independent(program, query, evidence), text
        return
    if expected != "possible":
        words = {"never": "never true", "always": "always true", "contradiction": "evidence must be possible"}
        # where the evidence cannot be, the query may have been refused before
        assert words[expected] in refusal or (expected == "contradiction" and refusal), (expected, refusal, text)
        return
    assert not refusal, (refusal, text)
    names = list(program.inputs)
    generator = torch.Generator().manual_seed(seed)
    logits = [
        torch.randn(2, len(atoms), generator=generator, dtype=torch.float64, requires_grad=True)
        for atoms in program.inputs.values()
    ]
    log_p = [z.log_softmax(1) for z in logits]
    order = [names.index(re.sub(r"net\d\((.*)\)", r"\1", name)) for name in result.variables]
    ours = value(result, [log_p[i] for i in order])[:, 0]
    theirs = log_prob(program, query, evidence, log_p)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-10), text
    # with every input in place the gradient agrees for log_p itself, otherwise for the logits
    of = log_p if named is not None else logits
    for mine, brute in zip(
        torch.autograd.grad(ours.sum(), of, retain_graph=True, allow_unused=True),
        torch.autograd.grad(theirs.sum(), of, allow_unused=True),
        strict=True,
    ):
        zero = torch.zeros(1, dtype=torch.float64)
        assert torch.allclose(zero if mine is None else mine, zero if brute is None else brute, rtol=0, atol=1e-10)


def written(body: tuple[Literal, ...]) -> str:
    return ", ".join(("" if sign else "\\+") + atom for atom, sign in body)


def _independent(program: Ground, query: str, evidence: list[Literal]) -> bool:
    """Whether the answer is the same for every value of the inputs."""
    answers: dict[tuple[int, ...], float] = {}
    given_: dict[tuple[int, ...], float] = {}
    for values, weight, true in program.worlds():
        held = all((atom in true) == sign for atom, sign in evidence)
        given_[values] = given_.get(values, 0.0) + held * math.exp(weight)
        answers[values] = answers.get(values, 0.0) + (held and query in true) * math.exp(weight)
    return max(answers.values()) - min(answers.values()) < 1e-12 > max(given_.values()) - min(given_.values())


@st.composite
def choices(draw) -> tuple[Ground, str]:
    """Neural inputs of 2 or 3 values (a network for each size), facts and annotated disjunctions."""
    values = {2: draw(st.sampled_from(["0,1", "yes,no"])), 3: draw(st.sampled_from(["0,1,2", "-1,0,1", "red,1,'a b'"]))}
    text = "".join(f"nn(net{n},[X],Y,[{v}]) :: d{n}(X,Y).\n" for n, v in values.items())
    inputs: dict[str, list[str | None]] = {}
    for name in draw(st.permutations(["a", "b", "c"]))[: draw(st.integers(1, 3))]:
        size = draw(st.sampled_from([2, 3, 3]))
        inputs[name] = [f"d{size}({name},{v})" for v in values[size].split(",")]
    if draw(st.booleans()):
        text += "nn(net1,[X]) :: holds(X).\n"
        inputs["e"] = [None, "holds(e)"]
    fixed = []
    for i in range(draw(st.integers(0, 2))):
        split = draw(st.sampled_from([[0.3], [0.2, 0.5], [0.25, 0.75], [0.1, 0.2, 0.3]]))
        fixed.append([(f"f{i}{k}", p) for k, p in enumerate(split)])
        text += "; ".join(f"{p}::{atom}" for atom, p in fixed[-1]) + ".\n"
    return Ground(inputs, fixed), text


@st.composite
def programs(draw) -> tuple[Ground, str, str, list[Literal]]:
    """Two to four layers of rules; a rule may use its own layer (recursion) or negate an earlier one."""
    program, text = draw(choices())
    atoms = [a for atoms in program.inputs.values() for a in atoms if a] + [a for f in program.fixed for a, _ in f]
    heads: list[str] = []
    for layer in range(draw(st.integers(1, 3))):
        here = [f"r{layer}{i}" for i in range(draw(st.integers(1, 2)))]
        rules = []
        for head in here:
            for _ in range(draw(st.integers(1, 3))):
                body = []
                for _ in range(draw(st.integers(1, 3))):
                    atom = draw(st.sampled_from(atoms + heads * 2 + here))
                    body.append((atom, atom in here or draw(st.integers(0, 3)) > 0))
                rules.append((head, tuple(body)))
        program.strata.append(rules)
        heads += here
        for head, body in rules:
            text += f"{head} :- {written(body)}.\n"
    query = draw(st.sampled_from(heads))
    evidence = []
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        atom, sign = draw(st.sampled_from(heads + atoms)), draw(st.booleans())
        evidence.append((atom, sign))
        negative = draw(st.sampled_from([f"evidence(\\+{atom}).", f"evidence({atom},false)."]))
        text += (f"evidence({atom}).\n" if sign else negative) + "\n"
    return program, text, query, evidence


def _qualified(program: Ground) -> list[str]:
    """Every input with its network."""
    return [f"net{1 if None in atoms else len(atoms)}({name})" for name, atoms in program.inputs.items()]


@FAST
@given(programs(), st.booleans(), st.integers(0, 1000))
def test_rules_with_negation_recursion_and_evidence_agree_with_every_world(case, name_inputs, seed):
    program, text, query, evidence = case
    assert_same(program, text, query, evidence, seed, _qualified(program) if name_inputs else None)


@st.composite
def graphs(draw) -> tuple[Ground, str, str, list[Literal]]:
    """Reachability over edges that hang on neural inputs, on plain choices, or are there for sure."""
    program, text = draw(choices())
    atoms = [a for atoms in program.inputs.values() for a in atoms if a] + [a for f in program.fixed for a, _ in f]
    size = draw(st.integers(3, 4))
    nodes = [f"n{i}" for i in range(size)]
    pairs = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes))
    edges: list[tuple[str, tuple[Literal, ...]]] = []
    for start, end in draw(st.lists(pairs, min_size=3, max_size=8, unique=True)):
        condition = draw(st.lists(st.tuples(st.sampled_from(atoms), st.booleans()), max_size=2))
        edges.append((f"edge({start},{end})", tuple(condition)))
    for head, body in edges:
        text += f"{head} :- {written(body)}.\n" if body else f"{head}.\n"
    text += "".join(f"node({n}).\n" for n in nodes)
    form = draw(st.sampled_from(["left", "right", "double"]))
    step = {"left": "path(X,Z), edge(Z,Y)", "right": "edge(X,Z), path(Z,Y)", "double": "path(X,Z), path(Z,Y)"}[form]
    text += f"path(X,Y) :- edge(X,Y).\npath(X,Y) :- {step}.\n"
    text += "apart(X,Y) :- node(X), node(Y), \\+path(X,Y).\n"
    through = itertools.product(nodes, repeat=3)
    path = [(f"path({x},{y})", ((f"path({x},{z})", True), (f"path({z},{y})", True))) for x, y, z in through]
    path += [(f"path({x},{y})", ((f"edge({x},{y})", True),)) for x in nodes for y in nodes]
    apart = [(f"apart({x},{y})", ((f"path({x},{y})", False),)) for x in nodes for y in nodes]
    program.strata = [edges, path, apart]
    start, end = draw(pairs)
    query = draw(st.sampled_from([f"path({start},{end})", f"apart({start},{end})"]))
    evidence = []
    if draw(st.integers(0, 3)) == 0:
        start, end = draw(pairs)
        evidence = [(f"path({start},{end})", draw(st.booleans()))]
        text += f"evidence(path({start},{end}),{str(evidence[0][1]).lower()}).\n"
    return program, text, query, evidence


@FAST
@given(graphs(), st.booleans(), st.integers(0, 1000))
def test_reachability_over_neural_edges_agrees_with_every_world(case, name_inputs, seed):
    program, text, query, evidence = case
    assert_same(program, text, query, evidence, seed, _qualified(program) if name_inputs else None)


def test_a_negation_between_two_recursions_is_no_cycle():
    """problog alone refuses this one."""
    text = f"{NET}p :- p, digit(a,2).\np :- digit(a,1).\nq :- q.\nq :- \\+p."
    assert compiled(text, "q").circuit.solutions([3]).tolist() == [[0], [2]]


def test_addition_has_the_right_pairs_for_every_sum():
    program = compiled(f"{TEN}addition(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.", "addition(a,b,N)")
    assert program.queries == tuple(f"addition(a,b,{n})" for n in range(19))
    assert program.variables == ("a", "b")
    assert program.domains == (tuple(range(10)),) * 2
    assert [count(program, n) for n in range(19)] == [min(n, 18 - n) + 1 for n in range(19)]


def test_the_label_may_be_a_neural_input_too():
    program = compiled(f"{TEN}addition(X,Y,Z) :- digit(X,A), digit(Y,B), digit(Z,C), C is A + B.", "addition(c,b,a)")
    assert program.variables == ("c", "b", "a")
    assert count(program) == 55
    rows = program.circuit.solutions([10, 10, 10])
    assert (rows[:, 0] + rows[:, 1] == rows[:, 2]).all()


def numbers(n: int, total: int) -> str:
    digits = f"{total:0{n + 1}d}"[::-1]
    lists = [",".join(f"{name}{i}" for i in range(n)) for name in "ab"]
    return f"add([{lists[0]}],[{lists[1]}],[{','.join(digits[:n])}],0,{digits[n]})"


@pytest.mark.parametrize("total", [0, 7, 123, 198])
def test_two_digit_addition_agrees_with_every_pair_of_numbers(total):
    program = compiled(CARRY, numbers(2, total))
    assert program.variables == ("a0", "a1", "b0", "b1")
    rows = program.circuit.solutions([10] * 4) @ [[1], [10], [1], [10]]
    assert (rows == total).all()
    assert len(rows) == sum(1 for x in range(100) if 0 <= total - x < 100)


def test_eight_digit_addition_compiles_in_seconds_to_a_small_circuit():
    began = time.monotonic()
    program = compiled(CARRY, numbers(8, 12345678 + 98765432))
    assert time.monotonic() - began < 20
    assert program.circuit.edges < 2000  # the digits of one column side by side; the order of the query explodes
    assert count(program) == 2 * 10**8 - 1 - (12345678 + 98765432)


def test_dense_recursion_needs_no_unfolding():
    """Breaking the cycles of a complete graph by copying would take about n! steps."""
    edges = "".join(f"edge({x},{y}) :- digit(e{x}{y},1).\n" for x in range(4) for y in range(4) if x != y)
    text = f"nn(net,[X],Y,[0,1]) :: digit(X,Y).\n{edges}path(X,Y) :- edge(X,Y).\npath(X,Y) :- path(X,Z), edge(Z,Y).\n"
    program = compiled(text, "path(0,3)")
    assert len(program.variables) == 12
    assert count(program) == _connected(4)


def _connected(n: int) -> int:
    """Directed graphs on n nodes in which the last can be reached from the first."""
    arcs = [(x, y) for x in range(n) for y in range(n) if x != y]
    total = 0
    for chosen in range(2 ** len(arcs)):
        reached, frontier = {0}, [0]
        while frontier:
            x = frontier.pop()
            for i, (a, b) in enumerate(arcs):
                if a == x and chosen >> i & 1 and b not in reached:
                    reached.add(b)
                    frontier.append(b)
        total += n - 1 in reached
    return total


def test_values_keep_their_python_types():
    program = compiled("nn(net,[X],Y,[-1,2.5,red,'a b',\"s\"]) :: is_(X,Y). q :- is_(x,red).", "q")
    assert program.domains == ((-1, 2.5, "red", "a b", "s"),)
    assert [type(v) for v in program.domains[0]] == [int, float, str, str, str]
    assert program.circuit.solutions([5]).tolist() == [[2]]


def test_a_neural_fact_has_the_values_false_and_true():
    program = compiled("nn(same,[X,Z]) :: same(X,Z). q :- same(a,b), \\+same(b,a).", "q")
    assert program.variables == ("a,b", "b,a")
    assert program.domains == ((False, True),) * 2
    assert program.circuit.solutions([2, 2]).tolist() == [[1, 0]]


def test_a_neural_clause_may_have_a_body():
    text = "nn(net,[X],Y,[0,1,2]) :: digit(X,Y) :- seen(X,Y).\nseen(a,0). seen(a,2). seen(b,1).\n"
    text += "q :- digit(a,X), digit(b,Y)."
    assert compiled(text, "q").circuit.solutions([3, 3]).tolist() == [[0, 1], [2, 1]]


def test_one_network_asked_by_two_clauses_about_one_input_is_one_variable():
    text = f"{NET}nn(net,[X],Y,[0,1,2]) :: other(X,Y). q :- digit(a,X), other(a,X), X > 0."
    assert count(compiled(text, "q")) == 2


def test_two_networks_on_one_input_are_two_variables():
    text = "nn(n1,[X],Y,[0,1]) :: d(X,Y). nn(n2,[X],Y,[p,q,r]) :: e(X,Y). q(X) :- d(X,1), \\+e(X,p)."
    program = compiled(text, "q(a)")
    assert program.variables == ("n1(a)", "n2(a)")
    assert count(program) == 2
    swapped = compiled(text, "q(a)", ["n2(a)", "n1(a)"])
    assert swapped.domains == (("p", "q", "r"), (0, 1))
    assert swapped.circuit.solutions([3, 2]).tolist() == [[1, 1], [2, 1]]


def test_variables_fixes_the_order_and_adds_inputs_that_no_rule_reads():
    program = compiled(f"{NET}q(X,Z) :- digit(X,A), digit(Z,B), A < B.", "q(a,b)", ["b", "spare", "a"])
    assert program.variables == ("b", "spare", "a")
    assert program.domains == ((0, 1, 2),) * 3
    assert count(program) == 9
    rows = program.circuit.solutions([3, 3, 3])
    assert (rows[:, 2] < rows[:, 0]).all()


def test_an_input_that_the_query_names_has_a_column_even_if_the_answer_ignores_it():
    text = f"{NET}q(X,Z) :- digit(X,1), maybe(Z). maybe(Z) :- digit(Z,0). maybe(_)."
    assert compiled(text, "q(a,b)").variables == ("a", "b")


def test_plain_choices_are_variables_after_the_neural_ones():
    text = f"{NET}0.3 :: rain. 0.2 :: sun; 0.3 :: fog. q :- rain, digit(a,1). q :- fog, \\+sun, digit(b,2)."
    program = compiled(text, "q")
    assert program.variables == ("a", "b")
    assert sorted(program.fixed) == [(0.2, 0.3, 0.5), (0.3, 0.7)]
    even = [torch.full((1, 3), 1 / 3, dtype=torch.float64).log()] * 2
    assert value(program, even).exp().item() == pytest.approx(1 - (1 - 0.3 / 3) * (1 - 0.3 / 3), abs=1e-12)


def test_certain_and_impossible_choices_are_no_variables():
    program = compiled(f"{NET}1.0 :: sure; 0.0 :: no. q :- sure, digit(a,1). q :- no, digit(b,1).", "q")
    assert program.fixed == ()
    assert program.circuit.solutions([3, 3])[:, 0].tolist() == [1, 1, 1]


def test_directives_ask_when_no_query_is_given():
    program = compiled(f"{NET}query(digit(b,_)). query(digit(a,2)).")
    assert program.queries == ("digit(b,0)", "digit(b,1)", "digit(b,2)", "digit(a,2)")
    assert program.variables == ("b", "a")


def test_answers_that_nothing_makes_true_are_left_out():
    program = compiled(f"{NET}q(X) :- digit(a,X), X > 0. q(7) :- digit(a,1), digit(a,2).", "q(N)")
    assert program.queries == ("q(1)", "q(2)")


def test_a_negated_query_and_a_trailing_period_are_understood():
    assert count(compiled(f"{NET}q :- digit(a,1).", "\\+q.")) == 2


def test_evidence_conditions_every_query():
    text = f"{NET}q(N) :- digit(a,X), digit(b,Y), N is X + Y. evidence(\\+digit(a,0)). evidence(digit(b,2),false)."
    program = compiled(text, "q(N)")
    assert program.conditional
    assert program.queries == ("q(1)", "q(2)", "q(3)")
    assert [count(program, i) for i in range(4)] == [1, 2, 1, 4]
    even = [torch.full((1, 3), 1 / 3, dtype=torch.float64).log()] * 2
    assert torch.allclose(value(program, even).exp(), torch.tensor([[0.25, 0.5, 0.25]], dtype=torch.float64))


def test_libraries_and_windows_line_ends_are_fine():
    text = f"{NET}:- use_module(library(lists)).\nq :- member(X,[a,b]),\n  digit(X,1).\n".replace("\n", "\r\n")
    assert count(compiled(text, "q")) == 5


def test_a_program_that_writes_stays_silent(capfd):
    compiled(f"{NET}q :- write(hello), nl, digit(a,X), X == 1.", "q")
    with pytest.raises(UserError):
        compiled(f"{NET}q :- debugprint(hello), digit(a,1), undefined.", "q")
    assert capfd.readouterr() == ("", "")


def test_the_recursion_limit_stays_what_it_was():
    """In a process of its own, because problog changes the limit when it is imported."""
    code = (
        "import sys; sys.setrecursionlimit(1234)\n"
        "from gedi.logic.limits import Limits\nfrom gedi.logic.problog import compile_program\n"
        f"compile_program({NET!r}, 'digit(a,1)', None, Limits())\n"
        "try: compile_program('a b.', 'a', None, Limits())\nexcept ValueError: pass\n"
        "print(sys.getrecursionlimit())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1234\n"


REFUSED = {
    "syntax": (f"{NET}a :- foo(b.\nc.", "a", r"line 2, column 9 \(unmatched character '\('\): a :- foo\(b\.;"),
    "syntax in the first line": ("a b.", "a", r"line 1, column 3"),
    "no period": (f"{NET}a :- digit(a,1)", "a", "line 2.*end every clause with a period"),
    "syntax of the query": (NET, "digit(a", "query must be ProbLog.*digit"),
    "unknown query": (f"{NET}addition(X) :- digit(X,1).", "adition(a)", r"mean 'addition/1'.*query adition\(a\)"),
    "unknown predicate": (f"{NET}q :- digitt(a,1).", "q", "'digitt/2': did you mean 'digit/2'.*line 2: q :-"),
    "never, no proof": (f"{NET}q(X) :- digit(X,7).", "q(a)", r"q\(a\), which is never true"),
    "never, contradiction": (f"{NET}q :- digit(a,1), digit(a,2).", "q", "q, which is never true"),
    "never, no answer": (f"{NET}q(X) :- digit(a,X), X > 5.", "q(N)", r"q\(N\), which is never true"),
    "always": (f"{NET}q :- digit(a,_).", "q", "q, which is always true"),
    "always, a fact": (f"{NET}q.", "q", "q, which is always true"),
    "no neural input": (f"{NET}0.3 :: r. q :- r.", "q", "must involve a neural input, got q"),
    "no network": ("0.3 :: r. q :- r.", "q", "must have a neural predicate"),
    "empty program": ("", "q", "must have a neural predicate"),
    "no query": (f"{NET}q :- digit(a,1).", None, r"needs a query.*query\(\.\.\.\)"),
    "no queries": (NET, [], "query must be a text"),
    "two atoms": (NET, "digit(a,1), digit(b,1)", "must be one atom"),
    "open query": (NET, "X", "must be one atom"),
    "empty domain": ("nn(net,[X],Y,[]) :: d(X,Y).", "d(a,1)", r"list of constants, got \[\] in line 1"),
    "open domain": ("nn(net,[X],Y,D) :: d(X,Y).", "d(a,1)", "list of constants, got D"),
    "repeated domain": ("nn(net,[X],Y,[1,2,1]) :: d(X,Y).", "d(a,1)", "must differ, got 1 twice"),
    "no output": ("nn(net,[X],Y,[1,2]) :: d(X).", "d(a)", "output of a network must be a variable"),
    "three arguments": ("nn(net,[X],Y) :: d(X,Y).", "d(a,1)", "must be written nn"),
    "inputs no list": ("nn(net,X,Y,[1,2]) :: d(X,Y).", "d(a,1)", "list of inputs"),
    "two heads": ("nn(net,[X]) :: d(X); 0.2 :: e.", "e", "must have one head"),
    "two domains": (
        f"{NET}nn(net,[X],Y,[0,1]) :: e(X,Y). q :- digit(a,1), e(a,1).",
        "q",
        r"one domain, got \[0, 1, 2\] and \[0, 1\] for net\(a\)",
    ),
    "evidence against evidence": (
        f"{NET}q :- digit(a,1). evidence(digit(a,1)). evidence(digit(a,2)).",
        "q",
        r"digit\(a,1\), digit\(a,2\), which is never true",
    ),
    "evidence without proof": (
        f"{NET}q :- digit(a,1). evidence(digit(a,9)).",
        "q",
        r"got digit\(a,9\), which is never",
    ),
    "query against evidence": (f"{NET}q :- digit(a,1). evidence(digit(a,2)).", "q", "q, which is never true given the"),
    "query implied": (f"{NET}q :- digit(a,1). evidence(q).", "q", "q, which is always true given the"),
    "evidence maybe": (f"{NET}evidence(digit(a,1),maybe).", "digit(a,1)", "true or false"),
    "open input": (f"{NET}q :- digit(X,1).", "q", "inputs of a network must be known"),
    "open fact": (f"{NET}0.2 :: e(X). q :- e(_), digit(a,1).", "q", "non-ground probabilistic clause in line 2"),
    "open arithmetic": (f"{NET}q :- digit(a,1), Z is Y + 1.", "q", "cannot ground q: .*is/2.* in line 2"),
    "division by zero": (f"{NET}q :- digit(a,X), _ is X / 0.", "q", "Division by zero"),
    "open answer": (f"{NET}q(_) :- digit(a,1).", "q(X)", "answers without variables"),
    "cut": (f"{NET}q :- !, digit(a,1).", "q", "no cut in line 2"),
    "negative cycle": (f"{NET}p :- \\+q, digit(a,1).\nq :- \\+p.", "q", "depend on its own negation"),
    "too much mass": (f"{NET}0.7 :: r; 0.6 :: s. q :- r, digit(a,1). q :- s.", "q", "at most 1, got 1.3"),
    "probability": (f"{NET}1.5 :: r. q :- r, digit(a,1).", "q", "between 0 and 1, got 1.5"),
    "no probability": (f"{NET}high :: r. q :- r, digit(a,1).", "q", "must be a number, got high"),
    "builtin": (f"{NET}is(X,Y) :- digit(X,Y).", "digit(a,1)", "built-in 'is/2'"),
    "library": (
        f"{NET}:- use_module(library(nolib)).",
        "digit(a,1)",
        r"nothing but library\(.*nolib",
    ),
    "number as a fact": (f"{NET}3.", "digit(a,1)", "Unexpected fact '3' in line 2"),
}


@pytest.mark.parametrize(("program", "query", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_work_is_refused_in_one_line(program, query, message):
    with pytest.raises(UserError, match=message) as caught:
        compiled(program, query)
    assert "\n" not in str(caught.value)
    assert "site-packages" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "must differ, got 'a' twice"),
        (["a"], r"without b; add"),
        (["a", "n2(a)", "b"], "got 'a' for n1.a. and n2.a."),
        (["n1(a)", "n2(a)", "b", "c"], r"unknown variable 'c'.*as n1\(c\)"),
    ],
)
def test_variables_that_cannot_be_are_refused(names, message):
    text = "nn(n1,[X],Y,[0,1]) :: d(X,Y). nn(n2,[X],Y,[0,1,2]) :: e(X,Y). q :- d(a,1), d(b,1). q :- e(a,1), d(b,0)."
    one = "nn(n1,[X],Y,[0,1]) :: d(X,Y). q :- d(a,1), d(b,1)."
    with pytest.raises(UserError, match=message):
        compiled(one if len(names) < 3 else text, "q", names)


@pytest.mark.parametrize(
    "rules",
    [
        "p(X) :- Y is X + 1, p(Y). q :- p(0), digit(a,1).",
        "p(X) :- p(f(X)). q :- p(0), digit(a,1).",
        "p(0). p(X) :- p(Y), X is Y + 1. q :- p(_), digit(a,1).",
        "p(X) :- Y is X * X, p(Y). q :- p(2), digit(a,1).",
        "p(2). p(X) :- p(Y), X is Y * Y + 1. q :- p(_), digit(a,1).",
    ],
    ids=["counting", "nesting", "answers", "squaring", "squared answers"],
)
def test_a_recursion_without_end_is_ended(rules):
    began = time.monotonic()
    with pytest.raises(UserError, match=r"grounding must end, got .* q"):
        compiled(f"{NET}{rules}", "q", seconds=1.0)
    assert time.monotonic() - began < 10


def test_a_deep_recursion_ends_before_the_memory_does(monkeypatch):
    monkeypatch.setattr("gedi.logic.problog_engine._DEPTH", 500)
    with pytest.raises(UserError, match="500 calls inside one another"):
        compiled(f"{NET}p(X) :- Y is X + 1, p(Y). q :- p(0), digit(a,1).", "q")


def test_a_circuit_that_grows_too_large_is_refused():
    with pytest.raises(UserError, match="more than 50 nodes"):
        compiled(CARRY, numbers(3, 777), size=50)


def test_long_lists_need_no_deep_python_stack():
    digits = [f"x{i}" for i in range(600)]
    text = "nn(net,[X],Y,[0,1]) :: digit(X,Y). all([]). all([X|T]) :- digit(X,1), all(T)."
    program = compiled(text, f"all([{','.join(digits)}])")
    assert program.variables == tuple(digits)
    assert count(program) == 1
