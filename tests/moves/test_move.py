"""Proposals and moments: what every move has."""

import pytest
import torch

from gedi.moves.move import Move, Proposal
from gedi.parts import kinds

BEST = torch.eye(3)


@pytest.mark.parametrize(("after", "better"), [(2.0, False), (1.0, False), (1.0 - 1e-5, False), (0.99, True)])
def test_a_proposal_improves_if_the_loss_drops_by_more_than_rounding(after, better):
    proposal = Proposal("cluster", BEST, None, 1.0, after)
    assert proposal.improves is better
    assert proposal.record() == {
        "cluster_before": 1.0, "cluster_after": after, "prototypes": "redrawn" if better else "kept",
    }  # fmt: skip
    assert proposal._replace(permutation=torch.arange(3)).record()["prototypes"] == ("renamed" if better else "kept")


@pytest.mark.parametrize("kind", kinds("gedi.moves", Move))
def test_a_move_is_due_at_its_moments_and_never_at_the_very_end(kind):
    cls = kinds("gedi.moves", Move)[kind]
    assert not any(cls().due(i, 10) for i in range(10))
    assert not any(cls(moments=(1.0,)).due(i, 10) for i in range(10))
    assert [i for i in range(300) if cls(moments=(1 / 3, 1 / 2, 2 / 3)).due(i, 300)] == [100, 150, 200]
    with pytest.raises(ValueError, match="moments"):
        cls(moments=(1.5,))


def test_a_move_must_say_what_it_proposes():
    class Idle(Move):
        kind = "idle"

    with pytest.raises(TypeError, match="Idle must define propose"):
        Idle().propose(None, None, 0, None, None)
