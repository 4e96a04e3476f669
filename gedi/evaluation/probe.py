"""What frozen features know of the classes: a linear classifier and nearest neighbours on top of them."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError, unknown

RIDGE = 1e-4
EPOCHS, BATCH, LEARNING_RATE, MOMENTUM = 100, 100, 1e-3, 0.9  # the paper's
_CHUNK = 1000


def linear_probe(
    train_x: Tensor,
    train_y: Tensor,
    test_x: Tensor,
    test_y: Tensor,
    *,
    recipe: Literal["lbfgs", "sgd"] = "lbfgs",
    generator: torch.Generator,
) -> float:
    r"""Test accuracy of a linear classifier ``softmax(W x + b)`` on frozen features.

    .. math:: \min_{W, b}\; \overline{\mathrm{CE}}(W x + b, y) + \tfrac{r}{2} |W|^2

    Args:
        train_x: features, (n, d).
        train_y: classes 0 to c - 1, (n,).
        test_x: features, (m, d).
        test_y: their classes, (m,).
        recipe: ``"lbfgs"`` solves it, on features standardised by the training set, with ridge ``r = 1e-4``;
            ``"sgd"`` is the paper's: 100 epochs in batches of 100, learning rate 1e-3, momentum 0.9,
            features as they are and no ridge, so features of small scale are not learned to the end.
        generator: stream for the first weights and the order of batches (``"sgd"`` alone draws).

    Example:
        >>> x, y = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]]), torch.tensor([0, 0, 1, 1])
        >>> linear_probe(x, y, x, y, generator=torch.Generator())
        1.0
    """
    _check(train_x, train_y, test_x, test_y)
    if recipe == "lbfgs":
        mean, width = train_x.mean(dim=0), train_x.std(dim=0, correction=0)
        width = torch.where(width > 0, width, 1)  # a dead feature stays at 0
        test_x = (test_x - mean) / width
        weight, bias = fit_lbfgs((train_x - mean) / width, train_y)
    elif recipe == "sgd":
        weight, bias = fit_sgd(train_x, train_y, generator)
    else:
        raise unknown("probe recipe", recipe, ("lbfgs", "sgd"))
    return float((F.linear(test_x, weight, bias).argmax(dim=1) == test_y).double().mean())


@torch.enable_grad()
def fit_lbfgs(x: Tensor, y: Tensor, ridge: float = RIDGE) -> tuple[Tensor, Tensor]:
    """Weights (c, d) and biases (c,) of ridge multinomial regression, by full-batch L-BFGS from zero."""
    classes = int(y.max()) + 1
    weight = x.new_zeros(classes, x.shape[1], requires_grad=True)
    bias = x.new_zeros(classes, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=300, tolerance_grad=1e-6, tolerance_change=1e-9, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(F.linear(x, weight, bias), y) + ridge / 2 * weight.square().sum()
        torch.autograd.backward(value)
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()


@torch.no_grad()
def fit_sgd(x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Weights (c, d) and biases (c,) by the paper's recipe; the gradient is written out, so it is fast."""
    classes, bound = int(y.max()) + 1, 1 / math.sqrt(x.shape[1])
    drawn = torch.rand(classes, x.shape[1] + 1, generator=generator, device=generator.device).to(x)
    parameters = bound * (2 * drawn - 1)  # as torch's linear layer starts; the bias is the last column
    x = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
    target = F.one_hot(y, classes).to(x)
    velocity = torch.zeros_like(parameters)
    for _ in range(EPOCHS):
        order = torch.randperm(len(x), generator=generator, device=generator.device).to(x.device)
        for rows in torch.split(order, BATCH):
            error = (x[rows] @ parameters.T).softmax(dim=1) - target[rows]
            velocity.mul_(MOMENTUM).add_(error.T @ x[rows], alpha=1 / len(rows))
            parameters.sub_(velocity, alpha=LEARNING_RATE)
    return parameters[:, :-1], parameters[:, -1]


@torch.no_grad()
def knn_accuracy(
    train_x: Tensor, train_y: Tensor, test_x: Tensor, test_y: Tensor, *, k: int = 20, temperature: float = 0.07
) -> float:
    """Test accuracy of the vote of the ``k`` nearest by cosine, each with weight ``exp(cos / temperature)``.

    Source: Wu et al., "Unsupervised feature learning via non-parametric instance discrimination", 2018.

    Example:
        >>> x, y = torch.tensor([[1.0, 0.1], [0.1, 1.0]]), torch.tensor([0, 1])
        >>> knn_accuracy(x, y, x * 7, y, k=1)
        1.0
    """
    _check(train_x, train_y, test_x, test_y)
    if not 1 <= k <= len(train_x):
        raise UserError(f"k must be 1 to the number of training points, got {k} for {len(train_x)}; lower k")
    directions = F.normalize(train_x, dim=1)
    classes = int(train_y.max()) + 1
    right = 0
    for part, labels in zip(torch.split(test_x, _CHUNK), torch.split(test_y, _CHUNK), strict=True):
        cosine, nearest = (F.normalize(part, dim=1) @ directions.T).topk(k, dim=1)  # (chunk, k)
        weight = ((cosine - 1) / temperature).exp()  # a common factor changes no vote and cannot overflow
        votes = part.new_zeros(len(part), classes).scatter_add_(1, train_y[nearest], weight)
        right += int((votes.argmax(dim=1) == labels).sum())
    return right / len(test_x)


def _check(train_x: Tensor, train_y: Tensor, test_x: Tensor, test_y: Tensor) -> None:
    for name, x, y in (("training", train_x, train_y), ("test", test_x, test_y)):
        if x.dim() != 2 or y.shape != x.shape[:1] or not len(x):
            raise UserError(
                f"{name} features must be (n, d) with labels (n,), got {tuple(x.shape)} and {tuple(y.shape)}; "
                "flatten the features and pass one label a point"
            )
    if train_x.shape[1] != test_x.shape[1]:
        raise UserError(
            f"training and test features must be of one width, got {train_x.shape[1]} and {test_x.shape[1]}; "
            "take both from the same layer"
        )
