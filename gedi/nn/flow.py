"""An invertible network on rows of a table, and the normal distribution that it comes from."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gedi.errors import UserError
from gedi.precision import full_precision


class Flow(nn.Module):
    """Monotone rational splines, stacked: ``z = f((x - centre) / spread)`` with ``z`` normal.

    Args:
        columns: of a row.
        transforms: how many layers.
        hidden: neurons of each layer's network.
        bins: pieces of each spline.
        coupling: one half of the columns is transformed given the other, as fast one way as the other; else every
            column given those before it.
        generator: the stream the weights are drawn from.

    Source: Durkan et al., "Neural spline flows", 2019; by zuko.
    """

    centre: Tensor
    spread: Tensor
    blur: Tensor

    def __init__(
        self,
        columns: int,
        *,
        transforms: int,
        hidden: Sequence[int],
        bins: int,
        coupling: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        try:
            from zuko.flows import NSF
        except ImportError:
            raise UserError("flows need zuko: pip install 'gedi-learn[flows]'") from None
        self.columns = columns
        with torch.random.fork_rng(devices=[]):  # zuko draws from torch's own stream
            torch.manual_seed(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
            self.flow = NSF(
                columns,
                transforms=transforms,
                hidden_features=tuple(hidden),
                bins=bins,
                passes=2 if coupling and columns > 1 else None,
                randperm=False,
            )
        self.register_buffer("centre", torch.zeros(columns))
        self.register_buffer("spread", torch.ones(()))
        self.register_buffer("blur", torch.zeros(()))

    def set_scales(self, centre: Tensor, spread: float, blur: float) -> None:
        """Where the data lie, how far apart they are, and the noise they are trained with."""
        self.centre.copy_(centre)
        self.spread.fill_(spread)
        self.blur.fill_(blur)

    @full_precision
    def log_prob(self, x: Tensor) -> Tensor:
        """``log p(x)``, exact: (n, d) -> (n,)."""
        inside = (x.to(self.centre) - self.centre) / self.spread
        log_prob: Tensor = self.flow().log_prob(inside) - self.columns * self.spread.log()
        return log_prob

    @full_precision
    def encoded(self, x: Tensor) -> Tensor:
        """The normal numbers that points come from, (n, d)."""
        z: Tensor = self.flow().transform((x.to(self.centre) - self.centre) / self.spread)
        return z

    @full_precision
    def decoded(self, z: Tensor) -> Tensor:
        """The points that normal numbers become, (n, d)."""
        x: Tensor = self.centre + self.spread * self.flow().transform.inv(z.to(self.centre))
        return x


def log_normal(z: Tensor) -> Tensor:
    """The logarithm of the standard normal density, summed over all but the first dimension.

    Example:
        >>> round(float(log_normal(torch.zeros(1, 2)).exp() * 2 * math.pi), 4)
        1.0
    """
    return -(z.flatten(1).square().sum(dim=1) + z[0].numel() * math.log(2 * math.pi)) / 2
