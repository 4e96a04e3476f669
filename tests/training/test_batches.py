"""Batches: groups stay whole, nothing comes twice in a pass, and a saved place goes on."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.training.batches import Batches


def draw(batches, times, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [batches.next(g) for _ in range(times)]


@st.composite
def mixed(draw):
    """Arguments of a batch that holds both kinds."""
    size, groups, loose = draw(st.integers(2, 4)), draw(st.integers(1, 8)), draw(st.integers(1, 20))
    return {
        "n": groups * size + loose,
        "group_size": size,
        "groups": groups,
        "whole": draw(st.integers(1, groups)),
        "free": draw(st.integers(1, loose)),
    }


@given(mixed(), st.integers(0, 10**6))
def test_groups_are_never_cut_and_come_first(case, seed):
    size, whole = case["group_size"], case.pop("whole")
    grouped = whole * size
    batches = Batches(batch_size=grouped + case["free"], **case)
    assert batches.grouped == grouped
    for index in draw(batches, 5, seed):
        assert index.shape == (batches.batch_size,)
        assert len(set(index.tolist())) == len(index)
        rows = index[:grouped].view(whole, size)
        assert (rows[:, 0] % size == 0).all()
        assert torch.equal(rows - rows[:, :1], torch.arange(size).expand(whole, -1))
        assert (rows < case["groups"] * size).all()
        assert (index[grouped:] >= case["groups"] * size).all()
        assert (index < case["n"]).all()


@given(mixed(), st.integers(0, 10**6))
def test_within_a_pass_each_kind_comes_once(case, seed):
    size, whole, free, groups = case["group_size"], case.pop("whole"), case["free"], case["groups"]
    batches = Batches(batch_size=whole * size + free, **case)
    seen = draw(batches, 40, seed)
    first = torch.stack([index[: whole * size : size] // size for index in seen])
    loose = torch.stack([index[whole * size :] for index in seen])
    n_loose = case["n"] - groups * size
    for drawn, per_pass in ((first, groups // whole), (loose, n_loose // free)):  # short ends are skipped
        for start in range(0, 40 - per_pass + 1, per_pass):
            one_pass = drawn[start : start + per_pass].flatten().tolist()
            assert len(set(one_pass)) == len(one_pass)


def test_every_group_is_seen_in_a_pass_that_fits():
    seen = torch.cat(draw(Batches(30, 6, group_size=3, groups=10), 5))
    assert sorted(seen.tolist()) == list(range(30))


def test_passes_come_in_another_order_each_time_and_from_the_generator_alone():
    a = draw(Batches(60, 60, group_size=3, groups=20), 2, seed=1)
    torch.manual_seed(5)
    again = draw(Batches(60, 60, group_size=3, groups=20), 2, seed=1)
    assert not torch.equal(*a)
    assert all(map(torch.equal, a, again))
    assert not torch.equal(a[0], draw(Batches(60, 60, group_size=3, groups=20), 1, seed=2)[0])


@pytest.mark.parametrize(
    ("n", "groups", "batch", "grouped"),
    [
        (300, 100, 60, 60),  # no free points
        (600, 100, 60, 30),  # half and half
        (400, 100, 60, 45),  # a quarter is free
        (410, 100, 60, 42),  # 43.9 of 60 are in groups: 14 whole ones, and the rest is free
        (1030, 10, 60, 3),  # 1.7 of 60 are in groups: one group is the least, or a constraint sees none
        (60, 0, 10, 0),  # no groups at all
    ],
)
def test_a_batch_shares_its_points_in_the_ratio_of_the_data(n, groups, batch, grouped):
    batches = Batches(n, batch, group_size=3, groups=groups)
    assert batches.grouped == grouped
    (index,) = draw(batches, 1)
    assert len(index) == batch
    assert (index < groups * 3).sum() == grouped


@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 60), st.integers(1, 90))
def test_the_share_is_right_to_within_a_group_or_refused(size, groups, loose, batch):
    n = groups * size + loose
    assume(batch <= n)
    if not loose and batch % size:
        with pytest.raises(UserError, match="whole groups"):
            Batches(n, batch, group_size=size, groups=groups)
        return
    try:
        batches = Batches(n, batch, group_size=size, groups=groups)
    except UserError:  # too few free points to fill up what a cut group leaves
        assume(False)
    assert batches.grouped % size == 0
    assert batches.grouped >= size
    assert abs(batches.grouped - batch * groups * size / n) <= size + 0.5
    (index,) = draw(batches, 1)
    assert len(set(index.tolist())) == batch


def test_a_batch_that_would_cut_a_group_is_refused_with_the_nearest_that_does_not():
    with pytest.raises(UserError) as error:
        Batches(300, 64, group_size=3, groups=100)
    assert str(error.value) == (
        "a constraint over 3 variables needs batches of whole groups: batch_size must be a multiple of 3, "
        "got 64; use 63"
    )
    with pytest.raises(UserError, match="got 2; use 3"):
        Batches(300, 2, group_size=3, groups=100)
    with pytest.raises(UserError, match="got 2; use 3"):
        Batches(310, 2, group_size=3, groups=100)  # the free points would fill it, and no group would fit
    with pytest.raises(UserError, match="must be a multiple of 4, got 10; use 8"):
        Batches(50, 12, group_size=4, groups=10, free=2)


@pytest.mark.parametrize(
    ("n", "batch", "groups", "free"), [(30, 33, 10, None), (30, 33, 10, 0), (40, 30, 10, 12), (20, 21, 0, None)]
)
def test_a_batch_of_more_than_the_data_is_refused(n, batch, groups, free):
    with pytest.raises(UserError, match=r"more than the data.*use a smaller batch_size"):
        Batches(n, batch, group_size=3, groups=groups, free=free)


@pytest.mark.parametrize(
    "case",
    [
        {"n": 10, "batch_size": 3},
        {"n": 21, "batch_size": 6, "group_size": 3, "groups": 7},
        {"n": 40, "batch_size": 13, "group_size": 3, "groups": 7, "free": 7},
    ],
)
@pytest.mark.parametrize("stop", [0, 1, 2, 5, 9])
def test_a_saved_place_goes_on_identically(case, stop, tmp_path):
    a, g = Batches(**case), torch.Generator().manual_seed(3)
    for _ in range(stop):
        a.next(g)
    torch.save({"batches": a.state_dict(), "g": g.get_state()}, tmp_path / "state.pt")
    saved = torch.load(tmp_path / "state.pt", weights_only=True)
    b, h = Batches(**case), torch.Generator()
    b.load_state_dict(saved["batches"])
    h.set_state(saved["g"])
    assert [a.next(g).tolist() for _ in range(12)] == [b.next(h).tolist() for _ in range(12)]


def test_without_groups_the_batches_are_a_plain_shuffle():
    """As before there were groups: the toy runs must not move."""
    g, h = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
    batches = Batches(10, 4)
    for _ in range(3):
        order = torch.randperm(10, generator=g)
        assert torch.equal(batches.next(h), order[:4])
        assert torch.equal(batches.next(h), order[4:8])
    assert batches.grouped == 0


def test_a_pass_over_the_data_shows_every_point_once():
    batches, g = Batches(12, 4), torch.Generator().manual_seed(0)
    seen = torch.cat([batches.next(g) for _ in range(3)])
    assert sorted(seen.tolist()) == list(range(12))


def test_batches_go_on_from_a_saved_place():
    a, g = Batches(10, 3), torch.Generator().manual_seed(0)
    a.next(g)
    b, h = Batches(10, 3), torch.Generator()
    b.load_state_dict(a.state_dict())
    h.set_state(g.get_state())
    assert [a.next(g).tolist() for _ in range(7)] == [b.next(h).tolist() for _ in range(7)]
