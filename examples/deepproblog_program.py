"""From a DeepProbLog program to a trained model: the program as it is, pairs of images, and their sums as labels.

python examples/deepproblog_program.py
"""

import numpy as np

import gedi
from gedi.config import override
from gedi.data import Dataset, Pixels, load_digits, sum_dataset
from gedi.logic import Constraint
from gedi.presets import preset

PROGRAM = """
nn(mnist_net,[X],Y,[0,1,2,3,4,5,6,7,8,9]) :: digit(X,Y).
addition(X,Y,Z) :- digit(X,X2), digit(Y,Y2), Z is X2+Y2.
"""


def trained(iterations: int = 300, pairs: int = 500, seed: int = 0) -> tuple[gedi.Fitted, Dataset]:
    """A network that has only been told sums, and the data it learnt from."""
    # 1. The query: N stays open, so that every sum is an answer of one circuit.
    rule = Constraint.from_problog(PROGRAM, "addition(a,b,N)")

    # 2. Do the sums name the digits? Asked before training.
    print(rule.shortcuts())

    # 3. Groups of two images, one sum each. Your own: Dataset(..., group_size=2, groups=n, answers=sums).
    in_preset = Pixels(mean=0.5, std=0.5)  # the scale of pixels that the preset below is made for
    data = sum_dataset("digits", pairs, 1, 0, np.random.default_rng(seed), pixels=in_preset)

    # 4. The network, the augmentation and the optimiser are settings; the rule is the program.
    settings = override(preset("digits-sum"), [f"stage2.iterations={iterations}", f"seed={seed}"])
    return gedi.fit(data, settings, constraint=rule), data


if __name__ == "__main__":
    fitted, data = trained()
    images, labels = load_digits().test, data.test_labels
    print(f"the digit itself is named in {(fitted.predict(images) == labels).float().mean():.3f} of unseen images")
