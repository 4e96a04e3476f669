"""The proposal: a cross-entropy that lets go."""

import pytest
import torch

from gedi.errors import UserError
from gedi.objectives.objective import Seen
from gedi.objectives.proposed import Proposed
from gedi.types import Clustered


def seen(logits, parts):
    return Seen(Clustered(logits, logits, logits), {}, 0.1, proposed=parts)


def test_it_is_the_mean_log_probability_of_the_cluster_proposed(context, g):
    logits, parts = torch.randn(9, 4, generator=g).double().requires_grad_(), torch.arange(9) % 4
    term = Proposed(weight=1.0).bind(context())
    wanted = -logits.softmax(dim=1)[torch.arange(9), parts].log().mean()
    torch.testing.assert_close(term(seen(logits, parts)), wanted)
    order = torch.randperm(9, generator=g)
    torch.testing.assert_close(term(seen(logits[order], parts[order])), wanted)
    torch.autograd.gradcheck(lambda x: term(seen(x, parts)), logits)


def test_it_lets_go():
    term = Proposed(weight=2.0, until=0.4)
    assert [term.at(progress) for progress in (0.0, 0.39, 0.41, 1.0)] == [2, 2, 0, 0]


def test_without_a_proposal_it_is_refused(context):
    with pytest.raises(UserError, match=r"see walk\.energy=graph"):
        Proposed(weight=1.0).bind(context(proposed=False))
