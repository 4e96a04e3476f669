"""The multi-layer perceptron encoder, with its input gradient in closed form."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.precision import no_autocast

Activation = Literal["silu", "leaky_relu", "sine"]
LEAK = 0.2
_CACHED = 2**18  # bytes of one layer's activations that stay in the cache, and in memory already at hand
_NARROW = 8  # up to this number of columns a product is several times faster with the matrix laid the other way


def _silu(z: Tensor) -> tuple[Tensor, Tensor]:
    gate = torch.sigmoid(z)
    value = z * gate
    return value, torch.addcmul(gate + value, value, gate, value=-1)


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
        raw: the second layer also sees the inputs as they are, so that what is linear need not be made of waves.
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
        raw: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not hidden:
            raise ValueError("an MLP encoder needs at least one hidden layer: hidden must not be empty")
        widths = [inputs, *hidden, outputs]
        self.beside = inputs if raw else 0  # columns of the second layer's input that are the raw ones, the last
        self.activations = [first or activation, *[activation] * (len(hidden) - 1)]
        self.layers = nn.ModuleList(
            nn.Linear(a + (self.beside if i == 1 else 0), b) for i, (a, b) in enumerate(itertools.pairwise(widths))
        )
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
        given = x
        for layer, activation in zip(inner, self.activations, strict=True):
            x = _VALUE[activation](layer(x))
            if self.beside and layer is inner[0]:
                x = torch.cat([x, given], dim=1)
        latent: Tensor = last(x)
        return latent

    def along(self, direction: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """``direction . enc(x)`` (n,) and its gradient in x (n, inputs), without autograd.

        The chain rule written out: the last layer folds into one vector, so the backward sweep starts
        at the last hidden layer. Both results stay differentiable in the parameters. Without a graph, many
        points on a CPU are taken in parts: larger tensors cost more to get and to fetch than to compute. In the
        precision of the weights, whatever the autocast: chains are accepted by differences of the value.
        """
        with no_autocast():
            return self._along(direction, x.to(direction.dtype))

    def _along(self, direction: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        *inner, last = self.linears
        row, offset = direction @ last.weight, direction @ last.bias  # (width,), ()
        rows = max(1, _CACHED // (len(row) * row.element_size()))
        if len(x) <= rows or x.device.type != "cpu" or torch.is_grad_enabled():
            return self._sweeps(inner, row, offset, x)
        parts = [self._sweeps(inner, row, offset, part) for part in torch.split(x, rows)]
        return torch.cat([value for value, _ in parts]), torch.cat([gradient for _, gradient in parts])

    def _sweeps(self, inner: Sequence[nn.Linear], row: Tensor, offset: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Up through the hidden layers for the value, down again for its gradient."""
        slopes, given = [], x
        for layer, activation in zip(inner, self.activations, strict=True):
            x, slope = _VALUE_AND_SLOPE[activation](layer(x))
            slopes.append(slope)
            if self.beside and layer is inner[0]:
                x = torch.cat([x, given], dim=1)
        value = torch.addmv(offset, x, row)
        gradient = row
        for layer, slope in zip(reversed(inner), reversed(slopes), strict=True):
            if self.beside and layer is inner[0]:
                waves, direct = gradient[..., : -self.beside], gradient[..., -self.beside :]
                gradient = _times(slope * waves, layer.weight) + direct
            else:
                gradient = _times(slope * gradient, layer.weight)
        return value, gradient


def _times(rows: Tensor, matrix: Tensor) -> Tensor:
    return F.linear(rows, matrix.t().contiguous()) if matrix.shape[1] <= _NARROW else torch.mm(rows, matrix)


def draw_linear(layer: nn.Linear, generator: torch.Generator | None) -> None:
    """PyTorch's own uniform initialisation, from a named stream."""
    bound = 1 / math.sqrt(layer.in_features)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if layer.bias is not None:
            layer.bias.uniform_(-bound, bound, generator=generator)
