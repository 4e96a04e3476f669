"""The constraint that a config names, and what is said of one that cannot work."""

import itertools

import pytest
import torch

from gedi.config import ConstraintConfig
from gedi.data import TASKS
from gedi.errors import UserError
from gedi.logic import Constraint, sums_to
from gedi.objectives.constraint import Rule
from gedi.objectives.objective import Context
from gedi.rules import build_constraint, check_constraint, foretold, left_open

PROGRAM = """
nn(net,[X],Y,[0,1,2,3]) :: digit(X,Y).
adds(X,Y,Z) :- digit(X,A), digit(Y,B), digit(Z,C), C is A + B.
"""


def built(symbols=4, **settings):
    return build_constraint(ConstraintConfig(**settings), symbols)


def solutions(holds, symbols=4, variables=3):
    return {values for values in itertools.product(range(symbols), repeat=variables) if holds(*values)}


def test_without_a_rule_there_is_no_constraint():
    assert built() is None


@pytest.mark.parametrize(
    ("settings", "holds"),
    [
        ({"rule": "addition"}, lambda a, b, c: a + b == c),
        ({"rule": "all-different"}, lambda a, b, c: len({a, b, c}) == 3),
        ({"rule": "sorted"}, lambda a, b, c: a <= b <= c),
    ],
)
def test_a_named_rule_is_what_its_name_says(settings, holds):
    assert set(built(**settings).solutions()) == solutions(holds)


def test_the_number_of_variables_is_a_setting():
    assert set(built(rule="sorted", variables=2).solutions()) == solutions(lambda a, b: a <= b, variables=2)
    assert len(built(rule="all-different", variables=4).domains) == 4


def test_the_number_of_symbols_is_the_networks():
    assert built(10, rule="addition").n_solutions == 55
    assert built(10, rule="addition").sizes == [10, 10, 10]


def test_a_program_and_a_list_of_clauses_come_from_files(tmp_path):
    (tmp_path / "adds.pl").write_text(PROGRAM)
    program = built(rule="problog", path=str(tmp_path / "adds.pl"), query="adds(a,b,c)")
    assert set(program.solutions()) == solutions(lambda a, b, c: a + b == c)
    # literal 1 + 4 i + k: variable i has value k
    (tmp_path / "rule.cnf").write_text("p cnf 8 2\n-1 5 0\n-5 1 0\n")
    clauses = built(rule="cnf", path=str(tmp_path / "rule.cnf"), variables=2)
    assert set(clauses.solutions()) == solutions(lambda a, b: (a == 0) == (b == 0), variables=2)


@pytest.mark.parametrize("rule", ["problog", "cnf"])
def test_a_rule_from_a_file_needs_one(rule):
    with pytest.raises(UserError, match=f"constraint.rule={rule} needs constraint.path"):
        built(rule=rule)
    with pytest.raises(UserError, match=r"constraint.path must name a file, but 'none.pl' is not there"):
        built(rule=rule, path="none.pl")


def test_a_program_with_several_queries_needs_one_of_them(tmp_path):
    (tmp_path / "adds.pl").write_text(PROGRAM + "query(adds(a,b,c)).\nquery(adds(b,c,a)).\n")
    several = built(rule="problog", path=str(tmp_path / "adds.pl"))
    with pytest.raises(UserError, match=r"training needs one query: choose one as .*constraint.query.*data.answer"):
        check_constraint(several, 3, 3, 50)


def test_a_training_term_needs_one_query_too():
    several = Constraint.from_problog(PROGRAM, ["adds(a,b,c)", "adds(b,c,a)"])
    with pytest.raises(UserError, match="training needs one query"):
        Rule(weight=1).bind(Context(3, 8, 0.1, constraint=several))
    Rule(weight=1).bind(Context(3, 8, 0.1, constraint=several["adds(a,b,c)"]))


def test_a_program_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "adds.pl").write_bytes(b"\xff\xfea\x00")
    with pytest.raises(UserError, match="cannot be read as UTF-8 text"):
        built(rule="problog", path=str(tmp_path / "adds.pl"))


def test_what_fits_passes():
    check_constraint(sums_to(2, range(10)), 10, 3, 100)


@pytest.mark.parametrize(
    ("constraint", "symbols", "group_size", "groups", "message"),
    [
        (sums_to(2, range(4)), 4, 2, 50, "over 3 variables needs groups of as many points, got groups of 2"),
        (sums_to(2, range(4)), 4, 1, 0, "got groups of 1; see data.group_size"),
        (sums_to(2, range(4)), 4, 3, 0, "needs training points in groups of 3, got 0 groups"),
        (sums_to(2, range(4)), 10, 3, 50, r"the 10 symbols that the network tells apart, got \[4, 4, 4\] values"),
        (
            Constraint.from_predicate(lambda a, b: a <= b, [range(2), range(3)]),
            *(3, 2, 50),
            r"the 3 symbols .*, got \[2, 3\] values; see model.clusters",
        ),
        (
            Constraint.from_problog(PROGRAM, ["adds(a,b,c)", "adds(b,c,a)"]),
            *(10, 3, 50),
            r"training needs one query: choose one as constraint\['adds\(a,b,c\)'\]",
        ),
        (lambda a, b, c: a + b == c, 10, 3, 50, "must be a gedi.logic.Constraint, got function"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(constraint, symbols, group_size, groups, message):
    with pytest.raises(UserError, match=message) as error:
        check_constraint(constraint, symbols, group_size, groups)
    assert "\n" not in str(error.value)


def told(constraint, answers=None, **more):
    found = left_open(constraint, answers, more.pop("occurring", None))
    return None if found is None else foretold(found, **more)


def test_what_a_rule_can_name_is_told_beforehand():
    total = Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)
    assert told(total, total.numbered([0, 1, 2, 3, 4])) == (
        "the rule: 1 symbol map satisfies the constraint",
        "the rule: the constraint names the symbols",
    )
    said = told(total, total.numbered([2, None, 2]))  # 0 + 2 and 1 + 1 alone
    assert "cannot name the symbols" in said[1]
    assert said[2] == "the rule: 1 exchange names, 1 merge symbols"
    assert said[3].endswith("a label for 0 would help most, which leaves no other naming")
    soft = torch.zeros(2, 5)
    soft[:, 2] = 0.5
    assert told(total, soft) == said
    program = Constraint.from_problog("0.5 :: x.\nnn(n,[X],Y,[0,1]) :: d(X,Y).\na :- x, d(y,1).\n", "a")
    assert told(program) is None  # nothing is claimed where nothing was searched


def test_combinations_that_occur_tell_more_than_answers():
    total = Constraint.from_function(lambda a, b: a + b, [range(5)] * 2)
    answers = total.numbered([0, 1, 5, 6])
    assert "names the symbols" in told(total, answers)[1]  # as if 1 + 4 and 3 + 3 were among the groups
    half = told(total, answers, occurring=TASKS["half"].occurring, basis="the combinations that occur", few={2: 10})
    assert half == (
        "the rule: 3 symbol maps satisfy the constraint, by the combinations that occur",
        "the rule: the constraint names the symbols, once clustering rules the collapses out",
        "the rule: 0 exchange names, 2 merge symbols",
        "the rule: labels are used: 10 images of 2",
    )


def test_several_labels_are_advised_where_one_is_not_enough():
    said = told(Constraint.from_predicate(lambda a, b: a != b, [range(4)] * 2))
    assert said[-1] == "the rule: a label for 0 and 1 and 2 would help most, which leaves no other naming"
