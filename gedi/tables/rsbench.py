"""Tasks with reasoning shortcuts: right answers by wrong symbols, and what mends them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gedi.tables.addition import NO_DENSITY
from gedi.tables.spec import Cell, Group, TableSpec, first_seed

if TYPE_CHECKING:
    from gedi.directory import RunDirectory

_NAMES = ("half", "even-odd", "math", "xor")
TASKS = tuple(f"{source}-{name}" for source in ("mnist", "digits") for name in _NAMES)
_TOLD = ("data.label_these=1",)
_LABELS = (
    *_TOLD, "stage2.terms.labelled.weight=1",
    "stage2.moves.labels.moments=[0.3333333333333333, 0.5, 0.6666666666666666]",
)  # fmt: skip
_WITHOUT, _BOTH = "GEDI, without the density", "answers and ten labels"
#: Without labels, with those of one symbol, and with all. "Answers alone" is what DeepProbLog trains.
METHODS: dict[str, tuple[str, ...]] = {
    "GEDI": (),
    _WITHOUT: NO_DENSITY,
    "GEDI, ten labels": _LABELS,
    "answers alone": ("method=logic-alone",),
    _BOTH: (
        *_TOLD, "stage2.terms.labelled.weight=1", "stage2.terms.agreement=null", "stage2.terms.balance=null",
        "stage2.terms.constraint.start=0", "stage2.moves.align.moments=[]", "model.head=linear",
    ),
    "all labels (upper bound)": ("method=supervised",),
}  # fmt: skip
#: Where every combination of digits occurs: most of the shortcuts are gone.
COMPLETE: dict[str, tuple[str, ...]] = {
    "GEDI, all combinations": ("data.combinations=all",),
    "answers alone, all combinations": ("data.combinations=all", "method=logic-alone"),
}
_NO_OTHER = ("mnist-xor", "digits-xor")  # all combinations occur as it is


def _cells(seeds: range, profile: str) -> list[Cell]:
    return [
        Cell(task, column, seed, None, (*NO_DENSITY, *settings) if column == _BOTH and _walks(task) else settings)
        for task in TASKS
        for column, settings in (METHODS if task in _NO_OTHER else METHODS | COMPLETE).items()
        if column != _WITHOUT or _walks(task)
        for seed in seeds
    ]


def _walks(task: str) -> bool:
    """Whether the task's recipe has a density; those for 8 x 8 pixels have none."""
    return task.startswith("mnist")


def _line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    return {
        "task": row,
        "maps that fit": _told(group, "maps"),
        "exchanges": _told(group, "swaps"),
        "method": column,
        "labels": "all" if "upper bound" in column else _told(group, "labels"),
        "answers right": group.figure("answer_accuracy") or "diverged",
        "of any combination": group.figure("answer_accuracy_anew"),
        "concept accuracy": group.figure("accuracy"),
        "F1": group.figure("concept_f1"),
        "collapse": group.figure("concept_collapse"),
        "ECE": group.figure("concept_ece"),
        "clusters matched": group.figure("accuracy_matched"),
        "seconds": group.seconds(),
        "runs": group.count(),
    }


def _told(group: Group, name: str) -> str:
    """What every run of a line told before training."""
    found: set[Any] = {(result.get("rule") or {}).get(name) for result in group.finished}
    return ", ".join(str(value) for value in sorted(found - {None}))


def _draw(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    from gedi.report import table_figures

    shown = first_seed(done)
    return [
        table_figures.symbols(shown[task, column], out / f"{task}_{name}.png")
        for task in TASKS
        for column, name in (("GEDI", "gedi"), ("answers alone", "answers"))
        if (task, column) in shown
    ]


RSBENCH_TABLES: dict[str, TableSpec] = {
    "rsbench": TableSpec(
        _cells,
        _line,
        _draw,
        (
            "Maps that fit are told before training: namings of the symbols, the true one among them, under which "
            "every combination that occurs keeps its answer; exchanges are those that are one to one, which clusters "
            "cannot rule out. Where there is one, nothing without labels can do better than chance at it: accuracy "
            "near 0 with clusters matched near 1 is the other naming.",
            "Answers right: on groups held out, of the combinations of training; of any combination: test images put "
            "together at random. Concept accuracy, F1, collapse and calibration error on all test images of the task's "
            "digits, without matching.",
        ),
    )
}
