"""A few labels beside a rule: of those symbols whose names it cannot tell, and of a few images of each."""

import numpy as np
import torch
from torch import Tensor

from gedi.config import Config
from gedi.data import Dataset
from gedi.errors import UserError
from gedi.logic import Constraint, Shortcuts
from gedi.objectives.objective import Few


def choose_few(
    config: Config, data: Dataset, constraint: Constraint | None, open_: Shortcuts | None, rng: np.random.Generator
) -> Few | None:
    """The points whose labels are told, as ``data.label_these`` and ``data.labelled`` ask; None where they do not.

    Args:
        config: the settings.
        data: with labels.
        constraint: the rule.
        open_: what the rule leaves open, where that is known.
        rng: draws the points of each symbol.
    """
    wanted = config.data.label_these
    if not wanted:
        return None
    if constraint is None or open_ is None:
        raise UserError(
            "data.label_these chooses symbols that a rule cannot name: it needs a rule whose maps are known"
        )
    if data.train_labels is None:
        raise UserError("data.label_these needs labels of the training data to take some from")
    if open_.kinds:
        raise UserError("data.label_these is of one network, but the rule has several domains")
    place = {symbol: k for k, symbol in enumerate(open_.symbols)}
    chosen = [place[symbol] for symbol in open_.label_these(wanted).symbols]
    index = torch.cat([_of_symbol(data.train_labels, symbol, config.data.labelled, rng) for symbol in sorted(chosen)])
    swaps = tuple(tuple(place[image] for image in swap) for swap in open_.swaps)
    return Few(index, data.train_labels[index].long(), swaps)


def _of_symbol(labels: Tensor, symbol: int, n: int, rng: np.random.Generator) -> Tensor:
    pool = (labels == symbol).nonzero()[:, 0]
    if len(pool) < n:
        raise UserError(f"data.labelled must be at most the {len(pool)} training images of symbol {symbol}, got {n}")
    return pool[torch.from_numpy(np.sort(rng.permutation(len(pool))[:n]))]
