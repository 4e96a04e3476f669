"""Names from knowledge alone."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from gedi.errors import UserError
from gedi.logic import Constraint, align, decode, sorted_

RULES = {
    "addition": Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3),
    "order": sorted_(3, range(6), strictly=True),
    "product": Constraint.from_predicate(lambda a, b, c: a * b % 7 == c, [range(7)] * 3),  # 1/x names as well as x
    "automaton": Constraint.from_automaton(
        4, (0, 0), lambda s, v: (s[0] + 1, (2 * s[1] + v) % 5), lambda s: s[1] == 1, range(5)
    ),
    "distance": Constraint.from_predicate(lambda a, b: abs(a - b) == 1, [range(5)] * 2),
}


def groups_of(c, n, g):
    solutions = torch.tensor(c.solutions())
    return solutions[torch.randint(len(solutions), (n,), generator=g)]


def memberships(clusters, k, noise, g):
    """Log memberships that speak mostly of the right cluster."""
    scores = 3.5 * one_hot(clusters, k).double()
    return (scores + noise * torch.randn(scores.shape, generator=g, dtype=torch.float64)).log_softmax(-1)


def quick(c, log_p, g):
    return align(c, log_p, restarts=60, iterations=30, generator=g)


def loss_of(c, log_p, order):
    return float(-c.log_prob(log_p[:, :, order], normalised=False).mean())


def balanced(log_p):
    """The memberships that the search sees."""
    m = log_p.exp() / log_p.exp().mean(dim=(0, 1))
    return (m / m.sum(dim=2, keepdim=True)).clamp_min(1e-6).log()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RULES)
def test_a_hidden_naming_is_recovered_up_to_what_the_rule_cannot_tell(name, seed, seeded):
    c, g = RULES[name], seeded(seed)
    k = c.sizes[0]
    names = torch.randperm(k, generator=g)
    log_p = memberships(names[groups_of(c, 300, g)], k, 1.0, g)
    found = quick(c, log_p, g)
    place = {cluster: symbol for symbol, cluster in enumerate(names.tolist())}
    renamed = tuple(place[cluster] for cluster in found.permutation.tolist())
    sure = c.shortcuts()
    assert renamed in {tuple(range(k)), *sure.swaps}
    if sure.names_symbols:
        assert torch.equal(found.permutation, names)
    assert found.after <= found.before
    assert loss_of(c, log_p, found.permutation) <= loss_of(c, log_p, names) + 0.05


@pytest.mark.parametrize("name", ["addition", "order"])
def test_the_right_naming_is_kept(name, g):
    c = RULES[name]
    assert c.shortcuts().names_symbols
    log_p = memberships(groups_of(c, 300, g), c.sizes[0], 0.5, g)
    found = quick(c, log_p, g)
    assert torch.equal(found.permutation, torch.arange(c.sizes[0]))
    assert not found.improves
    assert found.after == found.before


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), noise=st.sampled_from([0.0, 1.0, 10.0]))
def test_no_naming_is_returned_that_fits_worse_than_the_given_one(seed, noise):
    c = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(4)] * 3)
    g = torch.Generator().manual_seed(seed)
    clusters = torch.randint(4, (12, 3), generator=g)  # not even solutions
    log_p = memberships(clusters, 4, noise, g)
    found = align(c, log_p, restarts=8, iterations=8, generator=g)
    assert sorted(found.permutation.tolist()) == [0, 1, 2, 3]
    assert found.after <= found.before
    assert found.improves == (found.after < found.before)


SMALL = {
    "addition": Constraint.from_predicate(lambda a, b, c: a + b == c, [range(4)] * 3),
    "order": sorted_(3, range(4), strictly=True),
    "next": Constraint.from_predicate(lambda a, b: b == a + 1, [range(5)] * 2),
}


@settings(max_examples=120)
@given(
    name=st.sampled_from(sorted(SMALL)),
    seed=st.integers(0, 10_000),
    groups=st.integers(1, 12),
    skew=st.sampled_from([0.0, 1.0, 3.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_what_it_reports_is_the_loss_of_the_memberships_it_was_given(name, seed, groups, skew, dtype):
    c, g = SMALL[name], torch.Generator().manual_seed(seed)
    k = c.sizes[0]
    scores = 2 * torch.randn(groups, len(c.sizes), k, generator=g, dtype=torch.float64)
    uneven = skew * torch.randn(k, generator=g, dtype=torch.float64)  # clusters of very different size
    log_p = (scores + uneven).log_softmax(-1).to(dtype)
    found = align(c, log_p, restarts=6, iterations=6, generator=g)
    before, after = (loss_of(c, log_p.double(), order) for order in (torch.arange(k), found.permutation))
    assert found.before == pytest.approx(before, rel=1e-12)
    assert found.after == pytest.approx(after, rel=1e-12)
    assert found.improves == (after < before)
    assert found.improves or torch.equal(found.permutation, torch.arange(k))


def test_with_four_symbols_it_finds_the_best_of_all_namings(seeded):
    c = SMALL["addition"]
    for seed in range(5):
        g = seeded(seed)
        log_p = memberships(torch.randint(4, (30, 3), generator=g), 4, 2.0, g)
        log_p = (log_p - log_p.exp().mean(dim=(0, 1)).log()).log_softmax(-1)  # clusters of about the same size
        found = align(c, log_p, restarts=40, iterations=20, generator=g)
        # of all namings, and of all shares of memberships that may say nothing, the likeliest
        doubted = [((1 - share) * balanced(log_p).exp() + share / 4).log() for share in (0.0, 0.3, 0.6)]
        every = [torch.tensor(order) for order in itertools.permutations(range(4))]
        m = min(doubted, key=lambda m: min(loss_of(c, m, order) for order in every))
        best = min(loss_of(c, m, order) for order in every)
        assert found.improves
        assert loss_of(c, m, found.permutation) == pytest.approx(best, abs=1e-9)


def test_a_naming_that_fits_balanced_clusters_but_raises_the_loss_is_not_taken(seeded):
    c, given, kept = SMALL["addition"], torch.arange(4), 0
    for seed in range(30):
        g = seeded(seed)
        scores = 2 * torch.randn(6, 3, 4, generator=g, dtype=torch.float64).repeat(5, 1, 1)  # 6 kinds of group, not few
        log_p = (scores + 2 * torch.randn(4, generator=g, dtype=torch.float64)).log_softmax(-1)
        m = balanced(log_p)
        best = min(map(torch.tensor, itertools.permutations(range(4))), key=lambda order: loss_of(c, m, order))
        if loss_of(c, log_p, best) > loss_of(c, log_p, given) and loss_of(c, m, best) < loss_of(c, m, given):
            found = align(c, log_p, restarts=40, iterations=20, generator=g)
            if not found.improves:
                assert torch.equal(found.permutation, given)
                kept += 1
    assert kept > 3  # such cases are common


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("different", [lambda a, b: a != b, lambda a, b, c: (a != b) & (b != c)])
def test_names_that_no_rule_can_tell_apart_are_not_swapped_over_rounding(different, dtype, seeded):
    n = different.__code__.co_argcount
    c = Constraint.from_predicate(different, [range(4)] * n)
    for seed in range(20):
        g = seeded(seed)
        log_p = torch.randn(15, n, 4, generator=g, dtype=torch.float64).log_softmax(-1).to(dtype)
        found = align(c, log_p, restarts=8, iterations=6, generator=g)
        assert torch.equal(found.permutation, torch.arange(4))
        assert found.after == found.before
        assert not found.improves


def test_where_a_group_is_impossible_under_every_naming_the_loss_is_infinite_and_nothing_is_claimed(g):
    c = SMALL["next"]
    clusters = torch.tensor([[0, 0], [0, 2], [2, 1]])  # no two names make the first pair neighbours
    found = align(c, one_hot(clusters, 5).double().log(), restarts=20, iterations=10, generator=g)
    assert found.before == found.after == torch.inf
    assert not found.improves
    assert c.is_satisfied(torch.argsort(found.permutation)[clusters]).tolist() == [False, True, True]


def test_memberships_that_say_nothing_leave_the_naming_alone(g):
    found = quick(RULES["order"], torch.full((20, 3, 6), 1 / 6, dtype=torch.float64).log(), g)
    assert torch.equal(found.permutation, torch.arange(6))
    assert found.after == found.before


def test_no_swap_of_two_names_would_fit_better(seeded):
    c = RULES["order"]
    for seed in range(4):
        g = seeded(seed)
        log_p = memberships(torch.randperm(6, generator=g)[groups_of(c, 60, g)], 6, 1.0, g)
        found = align(c, log_p, restarts=1, iterations=1, generator=g)  # hardly fitted at all
        for i, j in itertools.combinations(range(6), 2):
            swapped = found.permutation.clone()
            swapped[[i, j]] = found.permutation[[j, i]]
            m = balanced(log_p)
            assert loss_of(c, m, swapped) > loss_of(c, m, found.permutation) - 1e-8


def test_one_odd_group_of_certain_symbols_has_no_veto(g):
    c = RULES["addition"]
    names = torch.randperm(10, generator=g)
    clusters = names[groups_of(c, 200, g)]
    clusters[0] = names[torch.tensor([9, 9, 9])]  # breaks the rule, for certain
    found = quick(c, one_hot(clusters, 10).double().log(), g)
    assert torch.equal(found.permutation, names)


def test_the_same_generator_gives_the_same_naming(seeded):
    c = RULES["addition"]
    log_p = memberships(groups_of(c, 400, seeded(1)).flip(1), 10, 2.0, seeded(2))
    first, second = (align(c, log_p, restarts=12, iterations=8, generator=seeded(3)) for _ in range(2))
    assert torch.equal(first.permutation, second.permutation)
    assert (first.before, first.after) == (second.before, second.after)
    state = torch.get_rng_state()
    align(c, log_p, restarts=8, iterations=2, generator=seeded(3))
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_is_left_in_the_graph(g):
    log_p = memberships(groups_of(RULES["order"], 20, g), 6, 1.0, g).requires_grad_()
    found = align(RULES["order"], log_p, restarts=8, iterations=4, generator=g)
    assert not found.permutation.requires_grad
    assert log_p.grad is None


# --- decode


@pytest.mark.parametrize("groups", [150, 500])  # more than the fit looks at
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_finer_clusters_are_read_as_the_symbols_they_belong_to(parts, groups, g):
    c = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(5)] * 3)
    truth = groups_of(c, groups, g)
    clusters = torch.randperm(5 * parts, generator=g)[parts * truth + torch.randint(parts, truth.shape, generator=g)]
    found = decode(c, one_hot(clusters, 5 * parts).double(), restarts=60, iterations=40, generator=g)
    assert found.shape == (groups, 3, 5)
    torch.testing.assert_close(found.sum(-1), torch.ones(groups, 3, dtype=torch.float64))
    assert (found.argmax(dim=2) == truth).double().mean() > 0.99


def test_decoding_keeps_precision_and_follows_its_generator(seeded):
    c = RULES["order"]
    m = memberships(groups_of(c, 60, seeded(0)), 6, 1.0, seeded(1)).exp().float()
    first, second = (decode(c, m, restarts=10, iterations=10, generator=seeded(2)) for _ in range(2))
    assert first.dtype == torch.float32
    assert torch.equal(first, second)


def test_names_and_symbols_do_not_know_of_half_precision_around_them(seeded):
    c = RULES["order"]
    log_p = memberships(groups_of(c, 60, seeded(0)), 6, 1.0, seeded(1)).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = align(c, log_p, restarts=10, iterations=10, generator=seeded(2))
        symbols = decode(c, log_p.float().exp(), restarts=10, iterations=10, generator=seeded(2))
    exact = align(c, log_p, restarts=10, iterations=10, generator=seeded(2))
    assert torch.equal(found.permutation, exact.permutation)
    assert (found.before, found.after) == (exact.before, exact.after)
    assert torch.equal(symbols, decode(c, log_p.float().exp(), restarts=10, iterations=10, generator=seeded(2)))


DIFFERENT = Constraint.from_predicate(lambda a, b: a < b, [range(3), range(4)])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: align(RULES["order"], torch.full((5, 3, 6), torch.nan)), "log_p must hold probabilities, got NaN"),
        (lambda: align(RULES["order"], torch.zeros(5, 3, 6)), "variable x1 of group 0 add up to 6 instead of 1"),
        (lambda: align(RULES["order"], torch.zeros(5, 3, 6, dtype=torch.long)), "floating-point numbers"),
        (lambda: decode(RULES["order"], torch.full((5, 3, 6), torch.nan)), "finite and at least 0, got nan"),
        (lambda: decode(RULES["order"], -torch.ones(5, 3, 6)), "finite and at least 0, got -1"),
        (lambda: align(DIFFERENT, torch.zeros(5, 2, 4)), "the same number of values"),
        (lambda: decode(DIFFERENT, torch.ones(5, 2, 4)), "the same number of values"),
        (lambda: align(RULES["order"], torch.zeros(5, 3, 5)), r"3 variables, 6 values\), got \(5, 3, 5\)"),
        (lambda: align(RULES["order"], torch.zeros(3, 6)), r"got \(3, 6\)"),
        (lambda: align(RULES["order"], torch.zeros(0, 3, 6)), "at least one group"),
        (lambda: align(RULES["order"], torch.zeros(5, 3, 6), iterations=0), "at least 1, got 200 and 0"),
        (lambda: decode(RULES["order"], torch.ones(5, 2, 6)), r"3 variables, clusters\), got \(5, 2, 6\)"),
        (lambda: decode(RULES["order"], torch.ones(5, 6)), r"got \(5, 6\)"),
        (lambda: decode(RULES["order"], torch.ones(0, 3, 6)), r"got \(0, 3, 6\)"),
        (lambda: decode(RULES["order"], torch.ones(5, 3, 6), restarts=0), "at least 1, got 0"),
    ],
)
def test_what_cannot_be_aligned_is_refused(ask, message):
    with pytest.raises(UserError, match=message):
        ask()


def spoilt(c, n, wrong, g):
    """A hidden naming, and memberships of which a share points anywhere."""
    names = torch.randperm(c.sizes[0], generator=g)
    clusters = names[groups_of(c, n, g)]
    anywhere = torch.randint(c.sizes[0], clusters.shape, generator=g)
    clusters = torch.where(torch.rand(clusters.shape, generator=g) < wrong, anywhere, clusters)
    return names, memberships(clusters, c.sizes[0], 1.0, g)


def test_names_are_found_with_half_of_the_memberships_wrong(seeded):
    g = seeded(1)
    names, log_p = spoilt(RULES["addition"], 300, 0.5, g)
    assert torch.equal(align(RULES["addition"], log_p, restarts=100, generator=g).permutation, names)


def test_confidence_tells_what_the_groups_can_tell(g):
    c = RULES["addition"]
    names, log_p = spoilt(c, 300, 0.1, g)
    sure = quick(c, log_p, g)
    assert torch.equal(sure.permutation, names)
    assert float(sure.confidence.min()) > 0.99
    assert sure.ties == ()
    few = torch.tensor([[0, 0, 0], [1, 1, 2], [2, 2, 4], [1, 3, 4]])  # nothing is said of 5 to 9
    found = align(c, (0.98 * one_hot(few.repeat(10, 1), 10) + 0.002).log(), restarts=60, generator=g)
    assert float(found.confidence[5:].max()) < 0.5
    torch.testing.assert_close(found.confidence[1:4], torch.full((3,), 0.5).double(), atol=0.15, rtol=0)  # or doubled
    assert float(found.confidence[0]) > 0.9
    assert len(found.ties) >= 10  # any two of the five may be exchanged


def test_few_groups_are_named_as_well_as_they_can_be(seeded):
    """The true naming is one of the best of all 5,040, and the search finds one that is as good."""
    c = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(7)] * 3)
    every = torch.tensor(list(itertools.permutations(range(7))))
    for seed in range(5):
        g = seeded(seed)
        names = torch.randperm(7, generator=g)
        log_p = memberships(names[groups_of(c, 9, g)], 7, 0.5, g)
        doubted = (0.9 * log_p.exp().clamp_min(1e-6) + 0.1 / 7).log()
        losses = -c.log_prob(doubted[:, :, every].permute(2, 0, 1, 3), normalised=False).mean(dim=1)
        found = align(c, log_p, restarts=60, generator=g)
        assert loss_of(c, doubted, found.permutation) == pytest.approx(float(losses.min()), abs=1e-9)
        weight = (9 * (losses.min() - losses)).exp()  # of every naming: how sure each name is, exactly
        exact = (weight[:, None] * (every == found.permutation)).sum(dim=0) / weight.sum()
        torch.testing.assert_close(found.confidence, exact, atol=0.05, rtol=0)


def test_a_ring_of_three_names_that_fits_as_well_is_told(g):
    c = Constraint.from_solutions([(0, 1), (1, 2), (2, 0), (3, 3)], [range(4)] * 2)  # 0 -> 1 -> 2 -> 0
    log_p = memberships(torch.tensor(c.solutions()).repeat(20, 1), 4, 0.2, g)
    found = align(c, log_p, restarts=20, generator=g)
    assert len(found.ties) == 2
    torch.testing.assert_close(found.confidence, torch.tensor([1 / 3, 1 / 3, 1 / 3, 1]).double(), atol=0.05, rtol=0)


def test_what_the_rule_cannot_tell_is_a_tie(g):
    c = RULES["distance"]  # 0 to 4 forwards or backwards
    log_p = memberships(groups_of(c, 200, g), 5, 0.5, g)
    found = quick(c, log_p, g)
    assert [tie.tolist() for tie in found.ties] == [found.permutation.flip(0).tolist()]
    torch.testing.assert_close(found.confidence, torch.tensor([0.5, 0.5, 1.0, 0.5, 0.5]).double(), atol=0.02, rtol=0)


def test_what_the_rule_cannot_tell_a_name_that_is_known_tells(seeded):
    c = RULES["distance"]  # 0 to 4 forwards or backwards
    for seed in range(4):
        g = seeded(seed)
        log_p = memberships(groups_of(c, 200, g), 5, 0.5, g)
        found = align(c, log_p, restarts=30, generator=g, named=[0])
        assert found.permutation.tolist() == [0, 1, 2, 3, 4]
        assert found.ties == ()
        assert float(found.confidence.min()) > 0.99
    with pytest.raises(UserError, match="named must be numbers of symbols, 0 to 4"):
        align(c, log_p, named=[5])


def test_observed_answers_name_clusters(g):
    c = Constraint.from_function(lambda a, b: a + b, [range(5)] * 2)
    truth = torch.randint(5, (150, 2), generator=g)
    names = torch.randperm(5, generator=g)
    log_p = memberships(names[truth], 5, 1.0, g)
    answers = c.numbered(truth.sum(dim=1).tolist())
    assert torch.equal(align(c, log_p, restarts=40, generator=g, answers=answers).permutation, names)
    finer = one_hot(2 * truth + torch.randint(2, truth.shape, generator=g), 10).float()
    found = decode(c, finer, restarts=40, generator=g, answers=answers)
    assert float((found.argmax(dim=2) == truth).float().mean()) > 0.99
    with pytest.raises(UserError, match="align needs one query"):
        align(c, log_p, generator=g)
