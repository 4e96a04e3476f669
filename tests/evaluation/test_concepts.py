"""Concept quality against scikit-learn and by hand."""

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from gedi.errors import UserError
from gedi.evaluation.concepts import calibration_error, concept_metrics


@pytest.mark.parametrize("seed", range(4))
def test_accuracy_and_f1_are_those_of_scikit_learn(seed):
    g = torch.Generator().manual_seed(seed)
    p = torch.randn(300, 5, generator=g).softmax(dim=1)
    labels = torch.randint(5, (300,), generator=g)
    found = concept_metrics(labels, p)
    assert found["concept_accuracy"] == pytest.approx(accuracy_score(labels, p.argmax(1)))
    assert found["concept_f1"] == pytest.approx(f1_score(labels, p.argmax(1), average="macro"))
    shuffled = torch.randperm(300, generator=g)
    assert concept_metrics(labels[shuffled], p[shuffled]) == pytest.approx(found)


def test_calibration_and_entropy_by_hand():
    n = 200_000
    g = torch.Generator().manual_seed(0)
    p = torch.rand(n, generator=g)
    happened = torch.rand(n, generator=g) < p
    assert calibration_error(p, happened) < 0.01  # as often as it says
    assert calibration_error(p, ~happened) > 0.3
    even = concept_metrics(torch.arange(4), torch.full((4, 4), 0.25))
    assert even["concept_entropy"] == pytest.approx(1.0)
    assert even["concept_ece"] == pytest.approx(0.0)
    right = concept_metrics(torch.arange(4), torch.eye(4))
    assert right == {
        "concept_accuracy": 1.0,
        "concept_f1": 1.0,
        "concept_collapse": 0.0,
        "concept_ece": 0.0,
        "concept_entropy": 0.0,
    }
    wrong = concept_metrics(torch.arange(4), torch.eye(4)[[0, 0, 0, 0]])
    assert wrong["concept_collapse"] == 0.75
    assert wrong["concept_ece"] == pytest.approx((0.75 + 3 * 0.25) / 4)


def test_mistakes_are_named():
    for labels, p, said in (
        (torch.zeros(3).long(), torch.zeros(2, 2), "must be"),
        (torch.tensor([0, 2]), torch.full((2, 2), 0.5), "must number the 2 symbols"),
    ):
        with pytest.raises(UserError, match=said):
            concept_metrics(labels, p)
