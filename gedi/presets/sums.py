"""Images of two numbers and their sum, given: the usual task of neuro-symbolic learning."""

from typing import Any

from gedi.presets.addition import ADDITION_PRESETS
from gedi.settings import merge


def _given(recipe: str, pairs: int, digits: int = 1, **stage2: Any) -> dict[str, Any]:
    """A recipe of addition, but digits come alike often, and sums name them from the first step on: no search."""
    settings = merge({}, ADDITION_PRESETS[recipe])
    stage = {key: value for key, value in settings["stage2"].items() if key != "moves"}
    source = "digits" if recipe.startswith("digits") else "mnist"
    return {
        **settings,
        "data": {"name": f"{source}-sum", "pairs": pairs, "digits": digits},
        "parts": {"swapped": settings["parts"]["swapped"]},  # for baselines
        "constraint": {"rule": "sum", "variables": 2 * digits},
        "stage2": {**stage, **stage2},
    }


SUM_PRESETS: dict[str, dict[str, Any]] = {
    "mnist-sum": _given("addition-10000", 10_000, iterations=700),
    "mnist-sum-2": _given("addition-10000", 5_000, digits=2),
    "digits-sum": _given("digits-addition", 400),
}
