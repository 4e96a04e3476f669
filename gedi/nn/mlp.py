"""The multi-layer perceptron encoder, with its input gradient in closed form."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Activation = Literal["silu", "leaky_relu", "sine"]
LEAK = 0.2


def _silu(z: Tensor) -> tuple[Tensor, Tensor]:
    gate = torch.sigmoid(z)
    value = z * gate
    return value, gate + value * (1 - gate)


def _leaky_relu(z: Tensor) -> tuple[Tensor, Tensor]:
    return F.leaky_relu(z, LEAK), (z > 0).to(z.dtype) * (1 - LEAK) + LEAK


_VALUE: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "leaky_relu": lambda z: F.leaky_relu(z, LEAK),
    "sine": torch.sin,
}
_VALUE_AND_SLOPE: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "silu": _silu,
    "leaky_relu": _leaky_relu,
    "sine": lambda z: (torch.sin(z), torch.cos(z)),
}


class MLP(nn.Module):
    """``enc(x)``: linear layers with an activation between them.

    Args:
        inputs: dimension of the data.
        hidden: widths of the hidden layers.
        outputs: dimension h of the latent.
        activation: ``silu`` (smooth: the energy has a continuous score) or ``leaky_relu`` (the paper's).
        first: the first layer's activation, if another; ``sine`` makes it a set of trained Fourier features,
            which fit curved, narrow densities that the others blur.
        sharpness: if given, the rows of the first layer get this norm and random directions, and the
            biases spread their zero lines over a ball of radius ``extent``, so that the first features
            resolve detail of size 1/sharpness everywhere in the data from the start. None keeps
            PyTorch's initialisation.
        extent: radius of the region the data lie in.
        generator: the stream the weights are drawn from.

    Example:
        >>> MLP(2, (100, 100), 8, generator=torch.Generator().manual_seed(0))(torch.zeros(3, 2)).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        *,
        activation: Activation = "silu",
        first: Activation | None = None,
        sharpness: float | None = None,
        extent: float = 1.5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not hidden:
            raise ValueError("an MLP encoder needs at least one hidden layer: hidden must not be empty")
        widths = [inputs, *hidden, outputs]
        self.activations = [first or activation, *[activation] * (len(hidden) - 1)]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        # a plain tuple beside the registered list: looking modules up by name is slow in the inner loops
        self.linears = tuple(layer for layer in self.layers if isinstance(layer, nn.Linear))
        for layer in self.linears:
            draw_linear(layer, generator)
        if sharpness is not None:
            bottom = self.linears[0]
            rows = torch.randn(bottom.weight.shape, generator=generator)
            with torch.no_grad():
                bottom.weight.copy_(F.normalize(rows, dim=1) * sharpness)
                bottom.bias.uniform_(-1, 1, generator=generator).mul_(sharpness * extent)

    def forward(self, x: Tensor) -> Tensor:  # (n, inputs) -> (n, outputs)
        """The latent of each row."""
        *inner, last = self.linears
        for layer, activation in zip(inner, self.activations, strict=True):
            x = _VALUE[activation](layer(x))
        latent: Tensor = last(x)
        return latent

    def along(self, direction: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """``direction . enc(x)`` (n,) and its gradient in x (n, inputs), without autograd.

        The chain rule written out: the last layer folds into one vector, so the backward sweep starts
        at the last hidden layer. Both results stay differentiable in the parameters.
        """
        *inner, last = self.linears
        slopes = []
        for layer, activation in zip(inner, self.activations, strict=True):
            x, slope = _VALUE_AND_SLOPE[activation](layer(x))
            slopes.append(slope)
        row = direction @ last.weight  # (width,)
        value = torch.mv(x, row) + direction @ last.bias
        gradient = row
        for layer, slope in zip(reversed(inner), reversed(slopes), strict=True):
            gradient = torch.mm(slope * gradient, layer.weight)
        return value, gradient.expand(len(value), -1)


def draw_linear(layer: nn.Linear, generator: torch.Generator | None) -> None:
    """PyTorch's own uniform initialisation, from a named stream."""
    bound = 1 / math.sqrt(layer.in_features)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if layer.bias is not None:
            layer.bias.uniform_(-bound, bound, generator=generator)
