"""Methods and presets that do not fit one another, and tables that cannot be made."""

from pathlib import Path
from typing import Any

from calls import Called, Typed

from gedi.config import Config, override, parse
from gedi.fitting import prepare
from gedi.methods import with_method
from gedi.presets import preset
from gedi.tables import write_table
from gedi.trained import check_method


def _config(name: str, *settings: str) -> Config:
    return parse(override(preset(name), settings))


def _table(folder: Path, **given: Any) -> str:
    return write_table(**{"name": "toy", "profile": "laptop", "seeds": range(1), "out": folder / "out"} | given)


_SAME = "changes nothing in preset"
_OF_LAPTOP = {"profile.txt": "laptop\n"}

CALLS = [
    # names of methods
    Typed("a method that is not there", "run moons --set method=gedy", "did you mean 'gedi'"),
    Typed("an empty method", "run moons --set method=''", "method: must be a valid string"),
    Typed("a method that is a number", "run moons --set method=3", "method"),
    Typed("a list of methods", "run moons --set method=[gedi,jem]", "method"),
    Typed("a method that is null", "run moons --set method=null", "method"),
    Typed("a method with a key below it", "run moons --set method.name=jem", "method"),
    Typed("a method that is a path", "run moons --set method=../../jem", "unknown method"),
    Typed("a method in a file that is not there", "run c.yaml", "unknown method 'jemm'", {"c.yaml": "method: jemm\n"}),
    # methods that change nothing
    Typed("no-nf on images", "run mnist --set method=no-nf", f"method no-nf {_SAME} mnist"),
    Typed("no-nf as the paper spells it", "run digits --set 'method=no NF'", f"method no-nf {_SAME} digits"),
    Typed("no-nf-2-enc on images", "run svhn --set method=no-nf-2-enc", "two encoders"),
    Typed("no-nf-2-enc on colours", "run cifar100 --set method=no-nf-2-enc", f"{_SAME} cifar100"),
    Typed("no-constraint on a toy", "run circles --set method=no-constraint", f"{_SAME} circles"),
    Typed("no-constraint on images", "run fashion-mnist --set method=no-constraint", f"{_SAME} fashion-mnist"),
    Typed(
        "no-constraint at the paper's", "run cifar10 --profile paper --set method=no-constraint", f"{_SAME} cifar10-"
    ),
    Typed("no-nf on sums", "run addition-1000 --set method=no-nf", "use method=gedi"),
    Typed("no-nf-2-enc without a density", "run digits-addition --set method=no-nf-2-enc", "one encoder"),
    Typed(
        "no stage 1 where there is none",
        "run digits-addition --set method=no-nf-no-train-1",
        "leave out the first stage",
    ),
    Typed(
        "a term taken away by hand and by the method",
        "run moons --set method=no-nf --set stage2.terms.negative_free.weight=0",
        f"method no-nf {_SAME} moons",
    ),
    Typed(
        "a method that changes nothing, from a file",
        "run c.yaml",
        f"method no-nf {_SAME} digits",
        {"c.yaml": "preset: digits\nmethod: no-nf\n"},
    ),
    Called("a method that changes nothing, asked", lambda _: check_method(_config("mnist", "method=no-nf")), _SAME),
    Called(
        "a method that changes nothing, prepared", lambda _: prepare(_config("digits", "method=no-nf-2-enc")), _SAME
    ),
    # methods that leave nothing
    Typed(
        "JEM where there is no energy", "run digits-addition --set method=jem", "leaves this preset nothing to train"
    ),
    Typed(
        "JEM where score matching is all",
        "run moons --set method=jem --set stage1.density.generative=0 --set stage2.density.generative=0",
        "leaves this preset nothing to train",
    ),
    Typed("logic alone without a rule", "run digits --set method=logic-alone", "needs a constraint"),
    Typed("logic alone on a toy", "run moons --set method=logic-alone", "needs a constraint"),
    Typed(
        "labels where there are none",
        "run toy --set method=supervised --set data.name=file --set data.path=x.csv --set model.clusters=2"
        " --set stage2.batch_size=4",
        "needs labelled training data",
        {"x.csv": "a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20))},
    ),
    Called("JEM without an energy", lambda _: with_method(_config("addition-100", "method=jem")), "nothing to train"),
    Called(
        "a method that slipped past the check",
        lambda _: with_method(Config(method="jemm")),
        "unknown method 'jemm': did you mean 'jem'",
    ),
    # presets
    Typed("parts of one preset", "presets moons --parts", "--parts is of all presets"),
    Typed("a preset that is not there", "presets moonz", "did you mean 'moons'"),
    # tables
    Typed("a table that is not there", "table toys", "did you mean 'toy'"),
    Typed("a profile that is not there", "table toy --profile big", "unknown profile 'big'"),
    Typed("a row that is not there", "table toy --only mons", "did you mean 'moons'"),
    Typed("an empty row", "table toy --only ''", "unknown row or method"),
    Typed("a method of another table", "table toy --only Barlow", "unknown row or method of this table 'Barlow'"),
    Typed("only lines that are none", "table probe --only mnist --only 'no NF'", "no NF is the same training as GEDI"),
    Typed("lines of no rows left", "table ood --only 'no NF' --only 'no NF, 2 enc.'", "nothing is left of table ood"),
    Typed("no seeds", "table toy --seeds 0", "--seeds must be 1 to 1000, got 0"),
    Typed("fewer than no seeds", "table toy --seeds=-3", "--seeds must be 1 to 1000"),
    Typed("a billion seeds", "table toy --seeds 1000000000", "--seeds must be 1 to 1000"),
    Typed("a first seed below 0", "table toy --first-seed=-1", "--first-seed must be 0 to"),
    Typed("a first seed past all", f"table toy --first-seed {10**30}", "--first-seed must be 0 to"),
    Typed("no jobs", "table toy --jobs 0", "--jobs must be 1 to 1000, got 0"),
    Typed("a million jobs", "table toy --jobs 1000000", "--jobs must be 1 to 1000"),
    Typed("a table into a file", "table toy --out here.txt", "must name a directory", {"here.txt": "kept"}),
    Typed("a table below a file", "table toy --out here.txt/below", "Not a directory", {"here.txt": "kept"}),
    Typed(
        "a profile that no preset of a table has", "table rsbench --out t --profile paper", "no preset of table rsbench"
    ),
    Typed(
        "two profiles in one folder",
        "table toy --out t --profile paper",
        "holds the 'laptop' profile",
        {f"t/{name}": text for name, text in _OF_LAPTOP.items()},
    ),
    Typed(
        "a profile of a table that is no text", "table toy --out t", "profile.txt", {"t/profile.txt": b"\xff\xfe\x00"}
    ),
    Called("no seeds from Python", lambda folder: _table(folder, seeds=range(0)), "--seeds must be 1 to"),
    Called("seeds below 0 from Python", lambda folder: _table(folder, seeds=range(-2, 2)), "--first-seed must be 0 to"),
    Called("seeds backwards from Python", lambda folder: _table(folder, seeds=range(5, 0, -1)), "--first-seed"),
    Called("an unknown profile from Python", lambda folder: _table(folder, profile="Paper"), "did you mean 'paper'"),
    Called("an unknown table from Python", lambda folder: _table(folder, name="images "), "did you mean 'images'"),
]
