"""A rule of your own: digits learn their names from nothing but being in order.

Groups of four images of handwritten digits, each group in rising order. Nobody says which digits they are.

    python examples/sorted_digits.py
"""

import numpy as np

from gedi.config import override, parse
from gedi.data import Dataset, load_digits
from gedi.fitting import measured_run, prepare, train
from gedi.logic import Constraint
from gedi.presets import preset

SIZE, GROUPS = 4, 220

# 1. The rule, in Python.
rule = Constraint.from_predicate(lambda a, b, c, d: (a < b) & (b < c) & (c < d), domains=[range(10)] * SIZE)

# 2. Can it name the symbols? Before any training.
print(rule.shortcuts())

# 3. The data: images in groups, group after group. (Labels only make the groups and judge the result.)
digits = load_digits()
rng = np.random.default_rng(0)
pools = [list(rng.permutation(np.flatnonzero(digits.train_labels.numpy() == d))) for d in range(10)]
order = []
while len(order) < SIZE * GROUPS:
    chosen = sorted(rng.choice(10, SIZE, replace=False))
    if all(pools[d] for d in chosen):
        order += [int(pools[d].pop()) for d in chosen]
data = Dataset(
    "sorted digits",
    digits.train[order],
    digits.test,
    digits.train_labels[order],
    digits.test_labels,
    group_size=SIZE,
    groups=GROUPS,
)

# 4. Train: the settings of digits-addition, with this rule and these data.
config = parse(override(preset("digits-addition"), [f"stage2.batch_size={SIZE * 45}"]))
prepared = prepare(config, data=data, constraint=rule)
train(prepared)

# 5. What it learnt: a symbol counts as right only if it is the digit itself.
figures, _ = measured_run(prepared)
print({name: round(figures[name], 3) for name in ("accuracy", "nmi", "constraint_satisfied")})
