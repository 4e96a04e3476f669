"""Tasks with reasoning shortcuts: digits of which only some combinations are seen, and an answer for each."""

from typing import Any

from gedi.presets.addition import ADDITION_PRESETS
from gedi.settings import merge


def _given(recipe: str, task: str, symbols: int, rule: str, size: int, groups: int, **stage2: Any) -> dict[str, Any]:
    """A recipe of addition with the answers of a task; nothing says how often a digit comes, so shares are even."""
    settings = merge({}, ADDITION_PRESETS[recipe])
    source = "digits" if recipe.startswith("digits") else "mnist"
    return merge(
        {key: value for key, value in settings.items() if key not in ("data", "constraint")},
        {
            "data": {"name": f"{source}-{task}", "pairs": groups, "validation": groups // 10},
            "model": {"clusters": symbols},
            "constraint": {"rule": rule, "variables": size},
            "stage2": stage2,
        },
    )


_FEW_STARTS = {"align": {"restarts": 50}}  # each goes through a circuit with 91 answers

# As many groups as in rsbench: 420 of each combination (of Half and EvenOdd).
RSBENCH_PRESETS: dict[str, dict[str, Any]] = {
    "mnist-half": _given("addition-100", "half", 5, "sum", 2, 2940),
    "mnist-even-odd": _given("addition-100", "even-odd", 10, "sum", 2, 6720),
    "mnist-math": _given("addition-100", "math", 6, "differences", 3, 3000, moves=_FEW_STARTS),
    "mnist-xor": _given("addition-100", "xor", 2, "parity", 4, 1000),
    "digits-half": _given("digits-addition", "half", 5, "sum", 2, 140, iterations=300),
    "digits-even-odd": _given("digits-addition", "even-odd", 10, "sum", 2, 400, iterations=300),
    "digits-math": _given("digits-addition", "math", 6, "differences", 3, 200, iterations=300, moves=_FEW_STARTS),
    "digits-xor": _given("digits-addition", "xor", 2, "parity", 4, 50, iterations=300, batch_size=120),
}
