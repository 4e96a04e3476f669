"""Weights that are spread over processes (FSDP): whole for who looks at them, in parts for who keeps them.

Where nothing is spread, each of these does nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, distribute_tensor


def whole(x: Tensor) -> Tensor:
    """A tensor with all its parts. Every process must ask."""
    return x.full_tensor() if isinstance(x, DTensor) else x


def local(x: Tensor) -> Tensor:
    """The part of a tensor that is here."""
    return x.to_local() if isinstance(x, DTensor) else x


def like(x: Tensor, other: Tensor) -> Tensor:
    """A whole tensor, spread as another is."""
    if not isinstance(other, DTensor) or isinstance(x, DTensor):
        return x
    # every process has all of it: nothing to send
    return distribute_tensor(x.to(other.device), other.device_mesh, other.placements, src_data_rank=None)


def load_model(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Put a whole state into a model, spread or not."""
    own = model.state_dict()
    model.load_state_dict({name: like(value, own[name]) for name, value in state.items()})


def load_optimiser(optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Put a whole state, which it may keep, into an optimiser of weights that are spread or not."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    moments = {
        number: {name: x if x.dim() == 0 else like(x, parameters[number]) for name, x in of_one.items()}
        for number, of_one in state["state"].items()
    }
    optimiser.load_state_dict({**state, "state": moments})


def gather(network: nn.Module) -> None:
    """Make the weights whole until the next backward pass, or :func:`scatter`."""
    if isinstance(network, FSDPModule):
        network.unshard()


def scatter(network: nn.Module) -> None:
    """Keep only this process's part of the weights."""
    if isinstance(network, FSDPModule):
        network.reshard()


@contextmanager
def gathered(network: nn.Module, *, write: bool = False) -> Iterator[None]:
    """Whole weights for a while; with ``write`` what is done to them stays."""
    if not isinstance(network, FSDPModule):
        yield
        return
    network.unshard()
    try:
        yield
        changed = {name: p.detach().clone() for name, p in network.named_parameters()} if write else {}
    finally:
        network.reshard()
    with torch.no_grad():
        for name, p in network.named_parameters():
            if name in changed:
                p.copy_(like(changed[name], p))
