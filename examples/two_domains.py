"""Two networks in one program: one reads the digit of an image, one its colour, and only totals are told.

Black numbers are earned and red ones spent. There are two images and what is left in the end; nobody says which digit
or colour it is.

python examples/two_domains.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from gedi.logic import Constraint

PROGRAM = """
nn(digit_net,[X],D,[0,1,2,3,4]) :: digit(X,D).
nn(colour_net,[X],C,[black,red]) :: colour(X,C).
worth(X,V) :- digit(X,V), colour(X,black).
worth(X,V) :- digit(X,D), colour(X,red), V is -D.
left(X,Y,Z) :- worth(X,A), worth(Y,B), Z is A + B.
"""


def painted(rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Digits 0 to 4 in black or red: (n, 2 channels * 64), the digits, and whether they are red."""
    images, digits = load_digits(n_class=5, return_X_y=True)
    red = rng.integers(0, 2, len(images))
    pixels = images[:, None] / 16 * np.stack([1 - 0.5 * red, 0.3 + 0.7 * red], axis=1)[:, :, None]
    pixels += 0.1 * rng.standard_normal(pixels.shape)
    return torch.from_numpy(pixels).flatten(1).float(), torch.from_numpy(digits), torch.from_numpy(red)


def trained(steps: int = 300, pairs: int = 600, seed: int = 0) -> tuple[float, float]:
    """How often the digit and the colour of unseen images are named right, after totals alone."""
    rng = np.random.default_rng(seed)
    x, digits, red = painted(rng)
    rule = Constraint.from_problog(PROGRAM, "left(a,b,N)")
    order = torch.from_numpy(rng.permutation(len(x)))
    train, test = order[:700], order[700:]
    rows = train[torch.from_numpy(rng.integers(0, len(train), (pairs, 2)))]
    worth = torch.where(red[rows] == 1, -digits[rows], digits[rows])
    totals = rule.numbered(worth.sum(dim=1).tolist())
    torch.manual_seed(seed)
    nets = {"digit_net": mlp(5), "colour_net": mlp(2)}
    optimiser = torch.optim.Adam([p for net in nets.values() for p in net.parameters()], 3e-3)
    places = [(name.partition("(")[0], "ab".index(name[-2])) for name in rule.variables]  # network and image of each
    for _ in range(steps):
        batch = torch.from_numpy(rng.integers(0, pairs, 100))
        log_p = [nets[net](x[rows[batch, i]]).log_softmax(dim=-1) for net, i in places]
        loss = -rule.log_prob(log_p, answers=totals[batch]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    named = (nets["digit_net"](x[test]).argmax(dim=1) == digits[test]).float().mean()
    coloured = (nets["colour_net"](x[test]).argmax(dim=1) == red[test]).float().mean()
    return float(named), float(coloured)


def mlp(outputs: int) -> nn.Module:
    """A small network."""
    return nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, outputs))


if __name__ == "__main__":
    print(Constraint.from_problog(PROGRAM, "left(a,b,N)").shortcuts())
    digit, colour = trained()
    print(f"unseen images: digit right {digit:.3f}, colour right {colour:.3f}")
