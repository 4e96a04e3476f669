"""A few labels choose between names that the rule cannot tell apart."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gedi.errors import UserError
from gedi.moves.labels import Labels, namings
from gedi.nn import Classifier, Model, Passthrough, Prototypes
from gedi.objectives.objective import Context, Few

SYMBOLS = 4
CENTRES = torch.eye(SYMBOLS)
SWAP = (2, 3, 0, 1)  # what the rule allows besides
TURN = (1, 2, 3, 0)  # no inverse of itself


class Unit(Passthrough):
    def forward(self, latent):
        return F.normalize(latent, dim=1)


def model_with(order):
    """Prototype number s stands for symbol ``order[s]``."""
    model = Model(nn.Identity(), Unit(), Prototypes(SYMBOLS, SYMBOLS, 0.1))
    with torch.no_grad():
        model.prototypes.weight.copy_(CENTRES[list(order)])
    return model


def proposed(model, labels, swaps):
    points = CENTRES[torch.arange(20) % SYMBOLS]  # the symbol of point i is i % 4
    rows = torch.tensor([int((torch.arange(20) % SYMBOLS == label).nonzero()[0]) for label in labels])
    move = Labels().bind(Context(SYMBOLS, SYMBOLS, 0.1, few=Few(rows, torch.tensor(labels), swaps)))
    return move.propose(model, points, 20, lambda x, g: x, torch.Generator())


@pytest.mark.parametrize("wrong", [SWAP, TURN, (3, 0, 1, 2)])
def test_one_label_undoes_an_exchange_that_the_rule_allows(wrong):
    found = proposed(model_with(wrong), [0], (SWAP, TURN))
    assert found.improves
    assert torch.equal(found.prototypes, CENTRES)
    assert found.after < 0.01 < found.before


def test_right_names_stay():
    found = proposed(model_with(range(SYMBOLS)), [0, 1], (SWAP, TURN))
    assert not found.improves
    assert torch.equal(found.prototypes, CENTRES)


def test_no_name_is_exchanged_that_the_rule_holds():
    found = proposed(model_with((1, 0, 2, 3)), [0], (SWAP,))
    assert tuple(found.permutation.tolist()) in {(0, 1, 2, 3), SWAP}


def test_namings_are_the_identity_swaps_and_their_inverses():
    orders = {tuple(order.tolist()) for order in namings((SWAP, TURN), SYMBOLS)}
    assert orders == {(0, 1, 2, 3), SWAP, TURN, (3, 0, 1, 2)}


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="there are none"):
        Labels().bind(Context(SYMBOLS, SYMBOLS, 0.1))
    bare = Model(nn.Identity(), Passthrough(), Classifier(SYMBOLS, SYMBOLS))
    with pytest.raises(UserError, match=r"model\.head=prototypes"):
        proposed(bare, [0], (SWAP,))
