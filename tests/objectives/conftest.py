"""What a network might have seen, for terms that are called on their own."""

import pytest
import torch

from gedi.objectives.objective import Context, Few, Seen
from gedi.types import Clustered


def _seen(data, view, **more):
    """From logits of the data and of their view; the walk's are 1 more than the view's."""
    dummy = torch.zeros(len(data), 1)
    looks = {name: Clustered(dummy, dummy, logits) for name, logits in {"view": view, "walk": view + 1}.items()}
    return Seen(Clustered(dummy, dummy, data), looks, **({"progress": 0.0} | more))


@pytest.fixture
def seen():
    """``seen(data_logits, view_logits, grouped=..., labels=..., progress=...)``."""
    return _seen


@pytest.fixture
def two_views():
    """``two_views(n, c)``: logits of n points among c clusters, twice."""

    def draw(n=12, c=4, seed=0):
        g = torch.Generator().manual_seed(seed)
        return [2 * torch.randn(n, c, generator=g, dtype=torch.float64) for _ in range(2)]

    return draw


@pytest.fixture
def context():
    """``context(log_shares=..., constraint=...)``: four clusters at temperature 0.5 unless said otherwise."""
    usual = {"clusters": 4, "embedding": 8, "temperature": 0.5, "labelled": True, "proposed": True}
    usual |= {"few": Few(torch.arange(3), torch.arange(3))}
    return lambda **more: Context(**(usual | more))
