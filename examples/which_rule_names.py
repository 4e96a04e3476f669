"""Which rule names which symbols? Asked of rules alone, before any data are collected.

python examples/which_rule_names.py
"""

from gedi.logic import Constraint, all_different, further_rules, sorted_, sums_to

DIGITS = [range(6)] * 2
RULES = {
    "a + b is given": Constraint.from_function(lambda a, b: a + b, DIGITS),
    "a + b = c": sums_to(2, range(6)),
    "a < b < c": sorted_(3, range(6), strictly=True),
    "a <= b": sorted_(2, range(6)),
    "|a - b| is given": Constraint.from_function(lambda a, b: abs(a - b), DIGITS),
    "a - b is given": Constraint.from_function(lambda a, b: a - b, DIGITS),
    "a * b is given": Constraint.from_function(lambda a, b: a * b, DIGITS),
    "a and b differ": all_different(2, range(6)),
    "which of a and b is even is given": Constraint.from_function(lambda a, b: (a % 2, b % 2), DIGITS),
}


def answers() -> dict[str, tuple[int, int, tuple[int, ...]]]:
    """Of each rule the maps that fit, how many of them exchange names, and whose labels would help most."""
    found = {name: rule.shortcuts() for name, rule in RULES.items()}
    return {
        name: (open_.count, len(open_.swaps), open_.label_these(1).symbols if open_.swaps else ())
        for name, open_ in found.items()
    }


def what_next(rule: str) -> list[str]:
    """The other rules, those first that would leave the fewest exchanges beside this one."""
    candidates = {name: other for name, other in RULES.items() if name != rule}
    return [f"{found.name} ({found.swaps} left)" for found in further_rules(RULES[rule].shortcuts(), candidates)]


if __name__ == "__main__":
    for name, (maps, swaps, label) in answers().items():
        names = "names every symbol, clusters given" if swaps == 0 else f"{swaps} exchanges are left"
        advice = f"; a label for {label[0]} helps most" if label else ""
        print(f"{name:35} {maps:6} maps fit: {names}{advice}")
    print("beside |a - b|:", "; ".join(what_next("|a - b| is given")[:3]))
