"""A 4 x 4 sudoku in images: a classifier that has seen a few digits reads it, and the rule mends and completes it.

python examples/sudoku.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from gedi.logic import Constraint, all_different

CELLS = [(1, 2, 3, 4)] * 16
ROWS = [[4 * r + k for k in range(4)] for r in range(4)]
COLUMNS = [[4 * k + r for k in range(4)] for r in range(4)]
BLOCKS = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


def rule() -> Constraint:
    """All different in every row, column and block: 288 grids."""
    first, *rest = (all_different(4, CELLS[0]).on(unit, CELLS) for unit in ROWS + COLUMNS + BLOCKS)
    for unit in rest:
        first = first & unit
    return first


def solve(puzzles: int = 40, clues: int = 9, examples: int = 3, seed: int = 0) -> tuple[float, float, float]:
    """Shares of clues read right alone, of clues read right with the rule, and of blanks filled right."""
    rng, sudoku = np.random.default_rng(seed), rule()
    images, labels = load_digits(return_X_y=True)
    pools = {digit: rng.permutation(np.flatnonzero(labels == digit)) for digit in CELLS[0]}
    shown = np.concatenate([pool[:examples] for pool in pools.values()])
    reader = LogisticRegression(C=0.01, max_iter=1000).fit(images[shown], labels[shown])
    grids = np.array(sudoku.solutions())[rng.integers(0, 288, puzzles)]  # (puzzles, 16)
    clue = np.stack([rng.permutation(16) < clues for _ in range(puzzles)])
    cells = np.array([[rng.choice(pools[digit][examples:]) for digit in grid] for grid in grids])
    p = reader.predict_proba(images[cells.flatten()]).reshape(puzzles, 16, 4)
    p[~clue] = 1 / 4  # nothing is known of a blank
    alone = np.array(CELLS[0])[p.argmax(axis=2)]
    best = sudoku.most_probable(torch.from_numpy(p).log())  # the most probable grid that is one
    solved = np.array(sudoku.named(best.values))
    return (
        float((alone == grids)[clue].mean()),
        float((solved == grids)[clue].mean()),
        float((solved == grids)[~clue].mean()),
    )


if __name__ == "__main__":
    alone, together, blanks = solve()
    print(f"clues read right: {alone:.3f} alone, {together:.3f} with the rule; blanks filled right: {blanks:.3f}")
