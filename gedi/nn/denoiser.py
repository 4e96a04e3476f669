"""A small denoiser of many noise widths, for images and for rows of a table."""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.nn.mlp import draw_linear

_LEVELS = 32  # features of the noise width
_FEW = 2  # channels that a product of matrices is the faster way to
Encoder = Callable[[Tensor], Tensor]


class Denoiser(nn.Module):
    r"""``D(x, sigma)``: the mean of what a point ``x`` may have been before noise of width ``sigma`` was added.

    A network ``F`` corrects what is right for a Gaussian with the data's centre ``m`` and spread ``s``:

    .. math:: D(x, \sigma) = m + \frac{s^2}{s^2 + \sigma^2} (x - m)
              + \frac{s \sigma}{\sqrt{s^2 + \sigma^2}} F\Big(\frac{x - m}{\sqrt{s^2 + \sigma^2}}, \ln\frac\sigma s\Big)

    so that inputs and outputs of ``F`` are of size 1 at every width. ``F`` begins at 0: an untrained denoiser is
    exactly the Gaussian's.

    With ``latent``, ``F`` is made of what an encoder that it does not own says of the point, whose distance from the
    centre is first made that of data, ``m + s (x - m) / sqrt(s^2 + sigma^2)``: a point without noise is encoded as it
    is. Only the decoder knows the width. It answers an offset and a slope for each coordinate, ``F = a + b u`` of the
    coordinate ``u`` itself: what is right if the latent says mean and spread of each, and nothing else leads past it.

    Args:
        shape: of one point: (channels, height, width), or (columns,).
        width: channels of the first convolution, or a quarter of the neurons of a layer.
        latent: length of the latents of an encoder that is handed over at each pass; None has layers of its own.
        generator: the stream the weights are drawn from.

    Attributes:
        centre, spread, lowest, highest: ``m``, ``s`` and the range of widths it is for; see :meth:`set_scales`.
        walk_width: the width of the noise in walks, once it is chosen.

    Source: the scaling of inputs and outputs is that of Karras et al., "Elucidating the design space of
    diffusion-based generative models", 2022.

    Example:
        >>> denoiser = Denoiser((2,))
        >>> denoiser(torch.tensor([[2.0, 4.0]]), torch.tensor([1.0])).detach().round()  # untrained
        tensor([[1., 2.]])
    """

    centre: Tensor
    spread: Tensor
    lowest: Tensor
    highest: Tensor
    walk_width: Tensor

    def __init__(
        self,
        shape: Sequence[int],
        width: int = 32,
        *,
        latent: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.body = _body(shape, width, latent, generator)
        self.register_buffer("centre", torch.zeros(tuple(shape)))
        for name, value in (("spread", 1.0), ("lowest", 0.1), ("highest", 3.0), ("walk_width", 0.1)):
            self.register_buffer(name, torch.tensor(value))

    @torch.no_grad()
    def set_scales(self, centre: Tensor, spread: float, lowest: float, highest: float) -> None:
        """Take the data's scales; they are kept with the weights."""
        self.centre.copy_(centre)
        for mine, given in ((self.spread, spread), (self.lowest, lowest), (self.highest, highest)):
            mine.fill_(given)
        self.walk_width.fill_(lowest)

    def widths(self, number: int) -> Tensor:
        """Widths evenly spaced in their logarithm, the lowest first: (number,)."""
        steps = torch.linspace(0, 1, number, device=self.lowest.device, dtype=self.lowest.dtype)
        return self.lowest * (self.highest / self.lowest) ** steps

    def size(self, width: Tensor) -> Tensor:
        """What ``F`` is multiplied by: the error of the Gaussian's denoiser, a coordinate."""
        return self.spread * width / (self.spread.square() + width.square()).sqrt()

    def encoded(self, x: Tensor, width: Tensor) -> Tensor:
        """What a shared encoder is given of points with noise, (n, *shape): as far from the centre as data are."""
        return self.centre + self.spread * self._away(x, width)

    def forward(self, x: Tensor, width: Tensor, encoder: Encoder | None = None) -> Tensor:
        """The mean of what each point (n, *shape) was before noise of its width (n,); by an encoder that it shares."""
        if encoder is not None:
            return self.decoded(x, width, encoder(self.encoded(x, width)))
        away = self._away(x, width)
        return self._corrected(away, width, self.body(away, self._level(width)))

    def decoded(self, x: Tensor, width: Tensor, latent: Tensor) -> Tensor:
        """The same where the latents of what is encoded are there already."""
        away = self._away(x, width)
        offset, slope = self.body(latent, self._level(width)).chunk(2, dim=1)
        return self._corrected(away, width, offset + slope * away)

    def _away(self, x: Tensor, width: Tensor) -> Tensor:
        each = _each(width, x)
        return (x - self.centre) / (self.spread.square() + each.square()).sqrt()

    def _level(self, width: Tensor) -> Tensor:
        return (width / self.spread).log().unsqueeze(1)

    def _corrected(self, away: Tensor, width: Tensor, found: Tensor) -> Tensor:
        each = _each(width, away)
        total = (self.spread.square() + each.square()).sqrt()
        gaussian = self.centre + self.spread.square() / total * away
        denoised: Tensor = gaussian + self.size(each) * found
        return denoised


class Doubled(nn.ConvTranspose2d):
    """The transposed convolution that ends at twice the side; to few channels as a product of matrices.

    That takes a quarter of the time to one channel and a third to two, more to three; the way back takes the same.

    Args:
        channels: that come in.
        answers: channels that go out.

    Example:
        >>> Doubled(8, 1)(torch.zeros(2, 8, 4, 4)).shape
        torch.Size([2, 1, 8, 8])
    """

    def __init__(self, channels: int, answers: int) -> None:
        super().__init__(channels, answers, 4, 2, 1)

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Every pixel's patch of 4 x 4, laid over those of its neighbours."""
        if self.out_channels > _FEW or self.bias is None:
            return super().forward(x, output_size)
        patches = torch.matmul(self.weight.flatten(1).t(), x.flatten(2))  # (n, answers * 16, pixels)
        sides = (2 * x.shape[2], 2 * x.shape[3])
        return F.fold(patches, sides, 4, padding=1, stride=2) + self.bias[:, None, None]


class ImageBody(nn.Module):
    """Two strides down and up again, a bottleneck for what concerns the whole image, and skips past both.

    Sides that are no multiple of 4 are padded. Of images of several channels each channel also leads past all of it, by
    a slope that the noise width gives: what takes the noise off that is left in single pixels, where it is not worth
    the channels it takes otherwise.

    Args:
        shape: (channels, height, width).
        width: channels at half the side; there are twice as many at a quarter.
        generator: the stream the weights are drawn from.
    """

    def __init__(self, shape: Sequence[int], width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        channels, *sides = shape
        cells = math.prod(math.ceil(side / 4) for side in sides)
        self.pad = [part for side in reversed(sides) for part in (0, -side % 4)]
        self.down = nn.Conv2d(channels, width, 4, 2, 1)
        self.deeper = nn.Conv2d(width, 2 * width, 4, 2, 1)
        self.middle = _middle(width)
        self.whole = nn.Sequential(nn.Linear(2 * width * cells, 64), nn.SiLU(), nn.Linear(64, 2 * width * cells))
        self.level = nn.Sequential(nn.Linear(1, _LEVELS), nn.SiLU(), nn.Linear(_LEVELS, 2 * width))
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.last = Doubled(width, channels)
        self.slope = _slope(channels) if channels > 1 else None
        _draw(self, generator, self.last, *([] if self.slope is None else [self.slope[-1]]))
        # a quarter off a pass, measured
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor, level: Tensor) -> Tensor:  # (n, c, h, w), (n, 1) -> (n, c, h, w)
        """What is added to the Gaussian's answer."""
        height, width = x.shape[2:]
        half = self.down(F.pad(x, self.pad).contiguous(memory_format=torch.channels_last))
        quarter = self.deeper(F.silu(half)) + self.level(level)[:, :, None, None]
        quarter = quarter + self.middle(quarter)
        quarter = quarter + self.whole(quarter.flatten(1)).view_as(quarter)
        out: Tensor = self.last(F.silu(self.up(F.silu(quarter)) + half))
        found = out[:, :, :height, :width]
        return found if self.slope is None else found + self.slope(level)[:, :, None, None] * x


class LatentBody(nn.Module):
    """An image from a latent: the way up of :class:`ImageBody`, without anything that leads past the latent.

    Args:
        latent: its length.
        shape: (channels, height, width).
        width: channels at half the side; there are twice as many at a quarter.
        generator: the stream the weights are drawn from.
    """

    def __init__(self, latent: int, shape: Sequence[int], width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        channels, *self.sides = shape
        self.quarter = [math.ceil(side / 4) for side in self.sides]
        self.first = nn.Linear(latent, 2 * width * math.prod(self.quarter))
        self.level = nn.Sequential(nn.Linear(1, _LEVELS), nn.SiLU(), nn.Linear(_LEVELS, 2 * width))
        self.middle = _middle(width)
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.last = Doubled(width, channels)
        _draw(self, generator, self.last)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, latent: Tensor, level: Tensor) -> Tensor:  # (n, h), (n, 1) -> (n, c, h, w)
        """The image of each latent."""
        height, width = self.quarter
        quarter = self.first(latent).view(len(latent), height, width, -1).permute(0, 3, 1, 2)  # channels last
        quarter = quarter + self.level(level)[:, :, None, None]
        quarter = quarter + self.middle(quarter)
        out: Tensor = self.last(F.silu(self.up(F.silu(quarter))))
        return out[:, :, : self.sides[0], : self.sides[1]]


class RowBody(nn.Module):
    """Three layers, the noise width entering each, and skips past them.

    Args:
        columns: of the table, or the length of latents.
        width: neurons of a layer.
        generator: the stream the weights are drawn from.
        answers: numbers that come out of each row.
    """

    def __init__(self, columns: int, width: int, generator: torch.Generator | None, answers: int) -> None:
        super().__init__()
        self.first = nn.Linear(columns, width)
        self.level = nn.Sequential(nn.Linear(1, _LEVELS), nn.SiLU(), nn.Linear(_LEVELS, 3 * width))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.last = nn.Linear(width, answers)
        _draw(self, generator, self.last)

    def forward(self, x: Tensor, level: Tensor) -> Tensor:  # (n, columns), (n, 1) -> (n, answers)
        """What is added to the Gaussian's answer."""
        hidden = self.first(x)
        for layer, shift in zip(self.layers, self.level(level).chunk(3, dim=1), strict=True):
            hidden = hidden + layer(F.silu(hidden + shift))
        out: Tensor = self.last(F.silu(hidden))
        return out


Body = ImageBody | LatentBody | RowBody


def _body(shape: Sequence[int], width: int, latent: int | None, generator: torch.Generator | None) -> Body:
    """From points, or from latents with an offset and a slope for every coordinate."""
    if len(shape) == 3:
        channels, *sides = shape
        if latent is None:
            return ImageBody(shape, width, generator)
        return LatentBody(latent, (2 * channels, *sides), width, generator)
    columns = math.prod(shape)
    return RowBody(latent or columns, 4 * width, generator, answers=2 * columns if latent else columns)


def _middle(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.SiLU(), nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.SiLU(), nn.Conv2d(2 * width, 2 * width, 3, 1, 1)
    )


def _slope(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(1, _LEVELS), nn.SiLU(), nn.Linear(_LEVELS, channels))


def _each(width: Tensor, x: Tensor) -> Tensor:
    return width.view(-1, *[1] * (x.dim() - 1))


def _draw(body: Body, generator: torch.Generator | None, *answering: nn.Module) -> None:
    """Every layer from a named stream, but those that answer, which begin at 0."""
    for layer in body.modules():
        if isinstance(layer, nn.Linear):
            draw_linear(layer, generator)
        elif isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            inputs = layer.in_channels * math.prod(layer.kernel_size)  # of an output
            if isinstance(layer, nn.ConvTranspose2d):
                inputs //= math.prod(layer.stride)
            bound = 1 / math.sqrt(inputs)
            with torch.no_grad():
                layer.weight.uniform_(-bound, bound, generator=generator)
                if layer.bias is not None:
                    layer.bias.uniform_(-bound, bound, generator=generator)
    with torch.no_grad():
        for layer in answering:
            for parameter in layer.parameters():
                parameter.zero_()
