"""Runs together: what they agree on, and what a rule leaves open."""

import pytest
import torch

from gedi.errors import UserError
from gedi.logic import Constraint, Shortcuts, all_different, ensemble, names_left_open, sums_to


def runs(n=5, symbols=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    sure = torch.nn.functional.one_hot(torch.arange(40) % symbols, symbols).float() * 6
    return [(sure + torch.randn(40, symbols, generator=g)).softmax(dim=1) for _ in range(n)]


def test_clusters_without_names_are_matched_before_they_are_averaged():
    g = torch.Generator().manual_seed(1)
    members = runs()
    plain = torch.stack(members).mean(dim=0)
    permuted = [members[0], *(p[:, torch.randperm(4, generator=g)] for p in members[1:])]
    torch.testing.assert_close(ensemble(permuted), plain)


def test_a_rule_that_names_all_leaves_the_mean_as_it_is():
    members = runs()
    rule = sums_to(2, range(4))
    assert rule.shortcuts().names_symbols
    torch.testing.assert_close(ensemble(members, rule.shortcuts()), torch.stack(members).mean(dim=0))


def test_confidence_drops_where_the_rule_cannot_tell():
    members = runs()
    nothing = ensemble(members, all_different(4, range(4)).shortcuts())
    torch.testing.assert_close(nothing, torch.full((40, 4), 0.25))
    pair = Constraint.from_predicate(
        lambda a, b: (a + b == 1) | ((a == 2) & (b == 2)) | ((a == 2) & (b == 3)), [range(4)] * 2
    ).shortcuts()
    assert pair.swaps == [(1, 0, 2, 3)]
    found = ensemble(members, pair)
    torch.testing.assert_close(found[:, 0], found[:, 1])
    mean = torch.stack(members).mean(dim=0)
    torch.testing.assert_close(found[:, 2:], mean[:, 2:])
    torch.testing.assert_close(found.sum(dim=1), torch.ones(40))
    # a run that learnt the other naming changes nothing: it is renamed as the rule allows
    other = [members[0], *(p[:, [1, 0, 2, 3]] for p in members[1:])]
    torch.testing.assert_close(ensemble(other, pair), found)


def test_mistakes_are_named():
    p = torch.full((2, 3), 1 / 3)
    for wrong, said in (
        (lambda: ensemble([]), "at least one"),
        (lambda: ensemble([p, p[:1]]), "same points"),
        (lambda: ensemble([p, -p]), "members must be"),
        (lambda: names_left_open(p, Shortcuts((0, 1, 2), ((0, 1, 2),), 5, exact=False)), "cut short"),
        (lambda: names_left_open(p, sums_to(2, range(4)).shortcuts()), "3 symbols"),
    ):
        with pytest.raises(UserError, match=said):
            wrong()
