"""Which further rule would tell apart what a rule leaves open."""

import itertools

import pytest

from gedi.errors import UserError
from gedi.logic import Constraint, all_different, further_rules, sorted_, sums_to


def over(rule, symbols, variables):
    return Constraint.from_predicate(rule, [range(symbols)] * variables)


def test_what_is_left_are_the_maps_that_keep_both():
    near = over(lambda a, b: abs(a - b) == 1, 4, 2)
    open_ = near.shortcuts()
    candidates = {
        "odd": over(lambda a, b: (a + b) % 2 == 1, 4, 2),
        "order": sorted_(2, range(4)),
        "sum": sums_to(2, range(4)),
    }
    found = {rule.name: rule for rule in further_rules(open_, candidates)}
    for name, candidate in candidates.items():
        rows = candidate.solutions()
        kept = [
            m for m in itertools.product(range(4), repeat=4)
            if m in open_.maps and all(candidate.is_satisfied([[m[k] for k in row]]).item() for row in rows)
        ]  # fmt: skip
        assert found[name].maps == len(kept)
        assert found[name].swaps == len([m for m in kept if len(set(m)) == 4]) - 1


def test_the_most_telling_comes_first_and_answers_count():
    even_odd = [(0, 2), (2, 4), (1, 3), (3, 5)]
    difference = Constraint.from_function(lambda a, b: abs(a - b), [range(6)] * 2)
    open_ = difference.shortcuts(data=even_odd)
    total = Constraint.from_function(lambda a, b: a + b, [range(6)] * 2)
    first, second = further_rules(open_, {"different": all_different(2, range(6)), "sum": total})
    assert (first.name, first.maps, first.swaps) == ("sum", 1, 0)
    assert second.name == "different"
    (given,) = further_rules(open_, {"sum": total}, data={"sum": [(0, 5)]})  # this sum alone tells less
    assert given.maps > 1


def test_what_cannot_be_asked_is_refused():
    open_ = all_different(2, range(3)).shortcuts()
    with pytest.raises(UserError, match="over the symbols"):
        further_rules(open_, {"other": all_different(2, range(4))})
    with pytest.raises(UserError, match="data must be of the candidates"):
        further_rules(open_, {"order": sorted_(2, range(3))}, data={"oder": [(0, 1)]})
    several = Constraint.from_predicate(lambda a, b: a < b, [range(2), range(3)]).shortcuts()
    with pytest.raises(UserError, match="one domain"):
        further_rules(several, {})
