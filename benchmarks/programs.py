"""Random programs over two networks of different domains, every answer and its slopes held against ProbLog.

    python benchmarks/programs.py --programs 300

Programs are those of tests/logic/test_answers.py: sums, products, differences and the like of numbers and of the prices
of colours, with and without plain probabilistic facts and negation. Written as they come; seeds of the tests are below
2000.
"""

import argparse
import sys
from pathlib import Path

from gedi.errors import UserError

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "logic"))


def main() -> None:
    """Compare, and say the largest difference."""
    from test_answers import compare

    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--programs", type=int, default=300)
    asked.add_argument("--first-seed", type=int, default=2000)
    given = asked.parse_args()
    worst, disagreeing, n, seed = (0.0, 0.0), [], 0, given.first_seed - 1
    while n < given.programs:
        seed += 1
        try:
            value, slope = compare(seed)
        except UserError as error:
            if "always true" not in str(error):
                raise
            print(f"seed {seed} is passed over: {error}", flush=True)
            continue
        n += 1
        worst = max(worst[0], value), max(worst[1], slope)
        if not (value < 1e-9 and slope < 1e-8):
            disagreeing.append(seed)
        if n % 10 == 0 or n == given.programs:
            print(f"{n} programs: values within {worst[0]:.1e}, slopes within {worst[1]:.1e}", flush=True)
    print(f"{given.programs - len(disagreeing)} of {given.programs} agree; not: {disagreeing or 'none'}")


if __name__ == "__main__":
    main()
