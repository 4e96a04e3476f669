"""The verdict: what a figure says, what weighs most, and that nothing is trusted for want of evidence."""

import math

import pytest

from gedi.evaluation import CHECKS, density_check, verdict

GOOD = {
    "clusters_used": 3, "used_share": 1.0, "confidence": 0.99, "loss_left": 0.001, "walks_leave": 0.0,
    "walks_cross": 0.0, "information_kept": 0.99,
    "walks_connect": 1.0, "rule_held_out": 0.97, "rule_names": 1.0, "names_open": 0, "rule_trained": 0.98,
    "test_points": 1000,
    "sample_1nn": 0.52, "told_apart": 0.55, "beyond_chance": 0.02, "mmd_over_null": 1.2, "interventions": 0,
}  # fmt: skip
BOTH = ("clusters", "density")


def test_every_check_holds_for_the_healthy_and_the_reasons_say_so():
    found = verdict(GOOD, BOTH)
    assert found["word"] == "trusted"
    assert set(found["checks"]) == set(GOOD) == {check.figure for check in CHECKS}
    assert any("Walks connect" in reason for reason in found["why"])


@pytest.mark.parametrize(
    ("figure", "value", "word"),
    [
        ("clusters_used", 1, "failed"),
        ("used_share", 0.5, "doubtful"),
        ("confidence", 0.4, "doubtful"),
        ("confidence", 0.05, "failed"),
        ("loss_left", 0.1, "doubtful"),
        ("loss_left", 0.35, "failed"),
        ("walks_leave", 0.05, "doubtful"),
        ("walks_leave", 0.3, "failed"),
        ("walks_cross", 0.3, "doubtful"),
        ("walks_connect", 0.4, "doubtful"),
        ("information_kept", 0.9, "doubtful"),
        ("rule_held_out", 0.7, "doubtful"),
        ("rule_held_out", 0.3, "failed"),
        ("rule_names", 0.0, "doubtful"),
        ("names_open", 1, "doubtful"),
        ("rule_trained", 0.6, "doubtful"),
        ("test_points", 50, "doubtful"),
        ("sample_1nn", 0.7, "doubtful"),
        ("sample_1nn", 0.95, "failed"),
        ("told_apart", 0.8, "doubtful"),
        ("beyond_chance", 0.2, "doubtful"),
        ("beyond_chance", 1.0, "failed"),
        ("mmd_over_null", 12.0, "doubtful"),
        ("interventions", 1, "doubtful"),
    ],
)
def test_one_bad_figure_is_enough_and_is_the_reason(figure, value, word):
    found = verdict(GOOD | {figure: value}, BOTH)
    assert found["word"] == word
    assert len(found["why"]) == 1
    assert found["checks"][figure]["word"] == word


@pytest.mark.parametrize("figure", GOOD)
def test_a_figure_that_is_not_a_number_is_a_failure(figure):
    assert verdict(GOOD | {figure: math.nan}, BOTH)["word"] == "failed"


def test_each_subject_has_a_word_of_its_own():
    assert verdict(GOOD, BOTH)["words"] == {"clusters": "trusted", "density": "trusted"}
    assert verdict(GOOD | {"told_apart": 0.9}, BOTH)["words"] == {"clusters": "trusted", "density": "doubtful"}
    assert verdict(GOOD | {"confidence": 0.0}, BOTH)["words"] == {"clusters": "failed", "density": "trusted"}
    assert verdict(GOOD | {"interventions": 1}, BOTH)["words"] == {"clusters": "doubtful", "density": "doubtful"}
    assert verdict({"confidence": 1.0}, ("clusters",))["words"] == {"clusters": "doubtful"}  # nothing shows it right


def test_the_worst_is_said_first():
    why = verdict(GOOD | {"confidence": 0.4, "walks_leave": 0.5}, BOTH)["why"]
    assert [reason.startswith(("50% of the walks", "Memberships")) for reason in why] == [True, True]
    assert "walks" in why[0]


def test_nothing_is_trusted_for_want_of_evidence():
    blind = {name: GOOD[name] for name in ("clusters_used", "used_share", "confidence", "loss_left", "interventions")}
    found = verdict(blind, ("clusters",))
    assert found["word"] == "doubtful"
    assert found["why"] == [reason for reason in found["why"] if reason.startswith("Not judged")]
    assert verdict({}, ())["word"] == "doubtful"


def test_a_density_that_was_not_judged_is_said_beside_clusters_that_were():
    ruled = {name: GOOD[name] for name in ("clusters_used", "used_share", "rule_held_out", "rule_names")}
    found = verdict(ruled, BOTH)
    assert found["word"] == "trusted"
    assert found["why"][-1].startswith("Not judged: whether the density")


def test_genuine_is_said_only_where_a_truth_was_compared():
    assert "genuine" not in density_check({"sample_1nn": 0.5, "walk_crossing": 0.4})
    assert density_check({"sample_1nn": 0.5, "walk_crossing": 0.4})["samples_fit"]
    assert not density_check({"sample_1nn": 0.9})["samples_fit"]
    assert density_check({"kl": 0.1, "sample_1nn": 0.5})["genuine"]
    assert not density_check({"kl": 0.1, "sample_1nn": 0.5, "walk_crossing": 0.4})["genuine"]
