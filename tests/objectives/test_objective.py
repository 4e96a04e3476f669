"""What every training term has: a schedule, a place in the log, and a value that is finite and has a gradient."""

import pytest
import torch

from gedi.errors import UserError
from gedi.logic import sums_to
from gedi.objectives.objective import Objective, Seen
from gedi.parts import kinds
from gedi.types import Clustered

KINDS = kinds("gedi.objectives", Objective)


@pytest.mark.parametrize(
    ("schedule", "at"),
    [
        ({"weight": 3.0}, {0.0: 3.0, 0.5: 3.0, 1.0: 3.0}),
        ({"weight": 3.0, "start": 0.25}, {0.0: 0.0, 0.2499: 0.0, 0.25: 3.0, 0.9: 3.0}),
        ({"weight": 3.0, "ramp": 0.5}, {0.0: 0.0, 0.125: 0.75, 0.25: 1.5, 0.5: 3.0, 0.9: 3.0}),
        (
            {"weight": 2.0, "start": 0.25, "ramp": 0.5},
            {0.0: 0.0, 0.25: 0.0, 0.5: 1.0, 0.625: 1.5, 0.75: 2.0, 1.0: 2.0},
        ),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_starts_and_rises_as_told(kind, schedule, at):
    term = KINDS[kind](**schedule)
    assert {progress: term.at(progress) for progress in at} == at


@pytest.fixture
def bound(context):
    """Every term, bound to a run that has all a term may need."""
    everything = context(temperature=0.5, finer=6, constraint=sums_to(2, range(4)))
    return {kind: cls(weight=1.0).bind(everything) for kind, cls in KINDS.items()}


@pytest.fixture
def shown():
    """Twelve points in groups of three, and two looks at them."""

    def clustered():
        latent, embedding, logits, finer = (
            torch.randn(12, size, dtype=torch.float64, requires_grad=True) for size in (5, 8, 4, 6)
        )
        return Clustered(latent, embedding, logits, finer)

    return Seen(
        clustered(),
        {name: clustered() for name in ("view", "walk", "view2", "view3")},
        0.5,
        12,
        torch.arange(12) % 4,
        torch.arange(12) % 3,
        few=torch.arange(5) % 4,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_term_is_a_number_with_a_gradient_for_the_data_and_only_the_looks_it_names(kind, bound, shown):
    term = bound[kind]
    with torch.no_grad():
        carried = term.after(shown, term.begin())  # what a term carries is there from the second step on
    value = term(shown, carried)
    assert value.shape == ()
    assert value.isfinite()
    assert value.dtype == torch.float64
    value.backward()

    def touched(clustered):
        return any(part.grad is not None and (part.grad != 0).any() for part in clustered)

    assert touched(shown.data)
    assert {name for name, look in shown.looks.items() if touched(look)} == set(term.looks)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"deep_cluster", "cor_info_max"}))
def test_all_other_terms_of_this_package_carry_nothing_from_step_to_step(kind, bound, shown):
    assert bound[kind].begin() is None
    assert bound[kind].after(shown, None) is None


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_frozen_checked_and_not_changed_by_a_run(kind, context):
    cls = KINDS[kind]
    term = cls(weight=1.0)
    before = term.model_dump()
    other = term.bind(context(finer=6, constraint=sums_to(2, range(4))))
    assert other is not term
    assert term.model_dump() == other.model_dump() == before
    for wrong in ({"weight": -1.0}, {"weight": True}, {"weight": 1.0, "start": 2.0}, {"weight": 1.0, "wieght": 2.0}):
        with pytest.raises(ValueError, match=r"weight|start|wieght"):
            cls(**wrong)
    with pytest.raises(ValueError, match="frozen"):
        term.weight = 2.0


def test_only_the_upper_bound_looks_at_labels():
    assert [kind for kind, cls in KINDS.items() if cls.needs_labels] == ["supervised"]
    assert [kind for kind, cls in KINDS.items() if cls.needs_few] == ["labelled"]


@pytest.mark.parametrize("kind", [kind for kind, cls in KINDS.items() if cls.shapes == "clusters"])
def test_what_shapes_clusters_does_so_by_their_logits(kind, bound, shown):
    bound[kind](shown).backward()
    assert shown.data.logits.grad is not None
    assert shown.data.embedding.grad is None


@pytest.mark.parametrize(
    ("kind", "lacking", "says"),
    [
        ("supervised", {"labelled": False}, "needs labelled training data"),
        ("finer", {}, r"needs some: see model\.finer"),
        ("constraint", {}, r"see constraint\.rule"),
        ("swapped", {"temperature": 0.1}, r"epsilon of swapped must be below model\.temperature"),
    ],
)
def test_a_term_refuses_a_run_that_cannot_feed_it(kind, lacking, says, context):
    with pytest.raises(UserError, match=says):
        KINDS[kind](weight=1.0).bind(context(**lacking))
