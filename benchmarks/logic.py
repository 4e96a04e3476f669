"""Logic: DeepProbLog against ours, our evaluator against KLay, and what compiling costs. One process.

    python benchmarks/logic.py [--out FILE.json]

Only the ratios mean anything: they are medians over alternating blocks of both.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import time
import warnings
from functools import reduce

import torch

from gedi.logic import Constraint, all_different, sums_to
from gedi.runs import versions

DIGITS = "nn(net,[X],Y,[0,1,2,3,4,5,6,7,8,9]) :: digit(X,Y).\n"
ADDITION = DIGITS + "triple(X,Y,Z) :- digit(X,A), digit(Y,B), digit(Z,C), C is A + B.\n"
NUMBERS = (
    DIGITS
    + """
total(Xs,Ys,Zs) :- carried(Xs,Ys,0,Zs).
carried([],[],C,[C]).
carried([X|Xs],[Y|Ys],C,[Z|Zs]) :-
    digit(X,A), digit(Y,B), S is A + B + C, Z is S mod 10, D is S // 10, carried(Xs,Ys,D,Zs).
"""
)
BATCH = 20


def alternate(ours, theirs, names: tuple[str, str], blocks: int = 7, calls: tuple[int, int] = (20, 20)) -> dict:
    """Milliseconds per call of both, measured in turns, and how many times faster ours is."""
    for warm in (ours, theirs):
        warm()
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(blocks):
        for name, call, n in zip(names, (ours, theirs), calls, strict=True):
            began = time.perf_counter()
            for _ in range(n):
                call()
            times[name].append((time.perf_counter() - began) / n * 1e3)
    ratios = [b / a for a, b in zip(*times.values(), strict=True)]
    result = {f"{name}_ms": round(statistics.median(taken), 3) for name, taken in times.items()}
    return {**result, "ratio": round(statistics.median(ratios), 2)}


def step(constraint: Constraint, logits: torch.Tensor):
    """Forward and backward."""

    def call():
        logits.grad = None
        (-constraint.log_prob(logits.log_softmax(-1)).mean()).backward()

    return call


def logits_for(constraint: Constraint, batch: int) -> torch.Tensor:
    return torch.randn(batch, len(constraint.sizes), max(constraint.sizes)).requires_grad_()


def deepproblog_step(logits: torch.Tensor):
    """The same by DeepProbLog, its circuit cached, its network in one batch."""
    from deepproblog.engines import ExactEngine
    from deepproblog.model import Model
    from deepproblog.network import Network
    from deepproblog.query import Query
    from problog.logic import Constant, Term

    class Softmax(torch.nn.Module):
        def forward(self, x):
            return x.softmax(-1)

    model = Model(ADDITION, [Network(Softmax(), "net", batching=True)], load=False)
    model.set_engine(ExactEngine(model), cache=True)
    model.add_tensor_source("x", {(Constant(i),): row for i, row in enumerate(logits.flatten(0, 1))})
    names = [Term(name) for name in "abc"]
    tensors = [Term("tensor", Term("x", Constant(i))) for i in range(3 * len(logits))]
    query = Term("triple", *names)
    batch = [Query(query, dict(zip(names, tensors[3 * i : 3 * i + 3], strict=True))) for i in range(len(logits))]

    def call():
        logits.grad = None
        found = torch.stack([next(iter(result.result.values())) for result in model.solve(batch)])
        (-found.log().mean()).backward(retain_graph=True)

    return call


def sudoku() -> Constraint:
    """Four by four: rows, columns and blocks hold different values."""
    cells = [range(4)] * 16
    lines = [[4 * r + c for c in range(4)] for r in range(4)] + [[4 * r + c for r in range(4)] for c in range(4)]
    blocks = [[4 * (r + i) + c + j for i in (0, 1) for j in (0, 1)] for r in (0, 2) for c in (0, 2)]
    one = all_different(4, range(4))
    return reduce(lambda a, b: a & b, (one.on(places, cells) for places in lines + blocks))


def numbers(n: int) -> Constraint:
    """Two numbers of n digits whose sum is 1, 2, 3 and so on, digit by digit."""
    a, b = (",".join(f"{name}{i}" for i in range(n)) for name in "ab")
    total = ",".join(str((i + 1) % 10) for i in range(n))
    return Constraint.from_problog(NUMBERS, f"total([{a}],[{b}],[{total},1])")


def timed(make) -> tuple[float, Constraint]:
    began = time.perf_counter()
    made = make()
    return round(time.perf_counter() - began, 3), made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ["GEDI_CACHE"] = ""  # compile, do not remember
    results: dict[str, dict] = {}

    addition = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3)
    if importlib.util.find_spec("deepproblog"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logits = logits_for(addition, BATCH)
            for name, ours in (("listed", addition), ("problog", Constraint.from_problog(ADDITION, "triple(a,b,c)"))):
                results[f"deepproblog, addition, batch {BATCH}, ours {name}"] = alternate(
                    step(ours, logits), deepproblog_step(logits), ("ours", "deepproblog"), blocks=5, calls=(50, 2)
                )

    cases = {
        "addition": lambda: addition,
        "addition by problog": lambda: Constraint.from_problog(ADDITION, "triple(a,b,c)"),
        "12 digits sum to 40": lambda: sums_to(12, range(10), total=40),
        "sudoku 4x4": sudoku,
        "two numbers of 4 digits by problog": lambda: numbers(4),
    }
    for name, make in cases.items():
        seconds, constraint = timed(make)
        row = {"edges": constraint.size, "compile_s": seconds}
        if importlib.util.find_spec("klay"):
            for batch in (BATCH, 200):
                logits = logits_for(constraint, batch)
                layered, klay = (step(constraint.with_backend(b), logits) for b in ("layered", "klay"))
                row[f"batch {batch}"] = alternate(layered, klay, ("layered", "klay"))
        results[f"klay, {name}"] = row

    numbers(1)  # problog is imported once
    compiled = {}
    for n in (1, 2, 4, 8):
        seconds, made = timed(lambda n=n: numbers(n))
        compiled[f"n={n}"] = {"seconds": seconds, "edges": made.size}
    results["compile, two numbers of n digits"] = compiled
    results["machine"] = {"processor": platform.processor() or platform.machine(), "threads": 1, **versions()}
    text = json.dumps(results, indent=2)
    print(text)
    if out:
        with open(out, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
