"""InceptionV3 as the FID weights have it, so that a state dict needs no other package."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _Convolution(nn.Module):
    """Convolution, batch norm, ReLU; with stride 1 the size stays, with stride 2 it is not padded."""

    def __init__(self, inputs: int, outputs: int, kernel: tuple[int, int], stride: int = 1, pad: bool = True) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2) if pad and stride == 1 else (0, 0)
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)))


# A step of a branch: name in the published weights, channels out, kernel, stride. Branches may share a beginning.
_Step = tuple[str, int, tuple[int, int], int]


class _Mixed(nn.Module):
    """Branches of convolutions beside a pooled one, concatenated."""

    def __init__(self, inputs: int, branches: Sequence[Sequence[_Step]], pool: str, pooled: int = 0) -> None:
        super().__init__()
        self.branches, self.pool = [[f"branch{step[0]}" for step in branch] for branch in branches], pool
        for branch in branches:
            width = inputs
            for name, outputs, kernel, stride in branch:
                if f"branch{name}" not in self._modules:
                    self.add_module(f"branch{name}", _Convolution(width, outputs, kernel, stride))
                width = outputs
        self.branch_pool = _Convolution(inputs, pooled, (1, 1)) if pooled else nn.Identity()
        self.outputs = sum(branch[-1][1] for branch in branches) + (pooled or inputs)

    def forward(self, x: Tensor) -> Tensor:
        parts, done = [], dict[str, Tensor]()
        for branch in self.branches:
            y = x
            for name in branch:
                if name not in done:
                    done[name] = self.get_submodule(name)(y)
                y = done[name]
            parts.append(y)
        if self.pool == "mean":
            pooled = F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)  # as TensorFlow averages at the border
        else:
            pooled = F.max_pool2d(x, 3, 1, 1) if self.pool == "max" else F.max_pool2d(x, 3, 2)
        return torch.cat([*parts, self.branch_pool(pooled)], dim=1)


_ONE, _ACROSS, _DOWN, _THREE = (1, 1), (1, 7), (7, 1), (3, 3)


def _a(inputs: int, pooled: int) -> _Mixed:
    return _Mixed(
        inputs,
        [
            [("1x1", 64, _ONE, 1)],
            [("5x5_1", 48, _ONE, 1), ("5x5_2", 64, (5, 5), 1)],
            [("3x3dbl_1", 64, _ONE, 1), ("3x3dbl_2", 96, _THREE, 1), ("3x3dbl_3", 96, _THREE, 1)],
        ],
        "mean",
        pooled,
    )


def _b(inputs: int) -> _Mixed:
    double: list[_Step] = [("3x3dbl_1", 64, _ONE, 1), ("3x3dbl_2", 96, _THREE, 1), ("3x3dbl_3", 96, _THREE, 2)]
    return _Mixed(inputs, [[("3x3", 384, _THREE, 2)], double], "halve")


def _c(inputs: int, width: int) -> _Mixed:
    kernels = (_ONE, _DOWN, _ACROSS, _DOWN, _ACROSS)
    widths = (width, width, width, width, 192)
    double: list[_Step] = [(f"7x7dbl_{i + 1}", widths[i], kernels[i], 1) for i in range(5)]
    single: list[_Step] = [("7x7_1", width, _ONE, 1), ("7x7_2", width, _ACROSS, 1), ("7x7_3", 192, _DOWN, 1)]
    return _Mixed(inputs, [[("1x1", 192, _ONE, 1)], single, double], "mean", 192)


def _d(inputs: int) -> _Mixed:
    long: list[_Step] = [("7x7x3_1", 192, _ONE, 1), ("7x7x3_2", 192, _ACROSS, 1), ("7x7x3_3", 192, _DOWN, 1)]
    return _Mixed(
        inputs, [[("3x3_1", 192, _ONE, 1), ("3x3_2", 320, _THREE, 2)], [*long, ("7x7x3_4", 192, _THREE, 2)]], "halve"
    )


def _e(inputs: int, pool: str) -> _Mixed:
    single: list[_Step] = [("3x3_1", 384, _ONE, 1)]
    double: list[_Step] = [("3x3dbl_1", 448, _ONE, 1), ("3x3dbl_2", 384, _THREE, 1)]
    return _Mixed(
        inputs,
        [
            [("1x1", 320, _ONE, 1)],
            [*single, ("3x3_2a", 384, (1, 3), 1)],
            [*single, ("3x3_2b", 384, (3, 1), 1)],
            [*double, ("3x3dbl_3a", 384, (1, 3), 1)],
            [*double, ("3x3dbl_3b", 384, (3, 1), 1)],
        ],
        pool,
        192,
    )


class InceptionV3(nn.Module):
    """InceptionV3 up to its 2048 features, as the FID weights have it: (n, 3, 299, 299) -> (n, 2048).

    It differs from the classifier in that means ignore the padding and the last block pools by maximum. Names are those
    of the published state dict.

    Source: Szegedy et al., "Rethinking the Inception architecture for computer vision", 2016.
    """

    def __init__(self) -> None:
        super().__init__()
        self.Conv2d_1a_3x3 = _Convolution(3, 32, _THREE, 2)
        self.Conv2d_2a_3x3 = _Convolution(32, 32, _THREE, pad=False)
        self.Conv2d_2b_3x3 = _Convolution(32, 64, _THREE)
        self.Conv2d_3b_1x1 = _Convolution(64, 80, _ONE)
        self.Conv2d_4a_3x3 = _Convolution(80, 192, _THREE, pad=False)
        self.Mixed_5b, self.Mixed_5c, self.Mixed_5d = _a(192, 32), _a(256, 64), _a(288, 64)
        self.Mixed_6a = _b(288)
        self.Mixed_6b, self.Mixed_6c, self.Mixed_6d, self.Mixed_6e = (_c(768, w) for w in (128, 160, 160, 192))
        self.Mixed_7a = _d(768)
        self.Mixed_7b, self.Mixed_7c = _e(1280, "mean"), _e(2048, "max")

    def forward(self, x: Tensor) -> Tensor:
        """Features of normalised images."""
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(F.max_pool2d(x, 3, 2)))
        x = F.max_pool2d(x, 3, 2)
        for name, block in self.named_children():
            if name.startswith("Mixed"):
                x = block(x)
        return x.mean(dim=(2, 3))
