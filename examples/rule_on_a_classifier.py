"""A rule as one more loss of a classifier that you have: a few labels, and many pairs whose order is known.

python examples/rule_on_a_classifier.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from gedi.logic import Constraint


def accuracies(steps: int = 150, seed: int = 0) -> tuple[float, float]:
    """Accuracy on unseen digits, by ten labels alone, and with the rule on 400 pairs besides."""
    images, labels = (torch.tensor(part) for part in (load_digits().data / 16, load_digits().target))
    images = images.float()
    rng = np.random.default_rng(seed)
    order = torch.from_numpy(rng.permutation(len(images)))
    train, test = order[:1200], order[1200:]
    few = torch.cat([train[labels[train] == digit][:1] for digit in range(10)])  # one label for each digit
    pairs = train[torch.from_numpy(rng.integers(len(train), size=(900, 2)))]
    pairs = pairs[labels[pairs[:, 0]] < labels[pairs[:, 1]]][:400]  # what is known: the first is the smaller one
    smaller = Constraint.from_predicate(lambda a, b: a < b, domains=[range(10)] * 2)

    def trained(weight: float) -> float:
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        optimiser = torch.optim.Adam(net.parameters(), 3e-3)
        for _ in range(steps):
            loss = F.cross_entropy(net(images[few]), labels[few])
            if weight:
                log_p = net(images[pairs]).log_softmax(dim=-1)  # (pairs, 2, 10)
                loss = loss - weight * smaller.log_prob(log_p).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return float((net(images[test]).argmax(dim=1) == labels[test]).float().mean())

    return trained(0.0), trained(1.0)


if __name__ == "__main__":
    alone, with_rule = accuracies()
    print(f"accuracy with ten labels {alone:.2f}, and with the rule {with_rule:.2f}")
