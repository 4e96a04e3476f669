"""How the program starts: at once, with nothing imported that a verb does not need."""

import os
import platform
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import torch

import gedi
from gedi import cli
from gedi.bench import SUBJECTS, subject
from gedi.config import override, parse
from gedi.data import CATALOGUE, SHAPES
from gedi.errors import UserError
from gedi.methods import METHODS
from gedi.names import KnownImages, Shape
from gedi.presets import PRESETS, preset
from gedi.tables import TABLES

EPSILONS = ("epsilon_start", "epsilon")
HEAVY = {"torch", "scipy", "sklearn", "matplotlib", "problog", "pysdd", "lightning_fabric", "kornia", "torchmetrics"}


def run(*words, **variables):
    return subprocess.run(
        [sys.executable, *words], env={**os.environ, **variables}, capture_output=True, text=True, timeout=60
    )


def imported(*words):
    """The packages that a program imports."""
    done = run("-X", "importtime", *words)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["--version"], ["run", "--help"], ["table", "--help"], ["evaluate", "--help"]),
        *(["data", "get", "--help"], ["bench", "--help"], ["presets"]),
    ],
    ids=" ".join,
)
def test_what_needs_no_training_imports_nothing_heavy(words):
    found = imported("-m", "gedi", *words)
    assert "typer" in found
    assert not found & HEAVY


def test_the_library_is_light_until_a_part_is_used():
    assert not imported("-c", "import gedi; dir(gedi)") & HEAVY
    assert "torch" in imported("-c", "import gedi; gedi.losses")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"]], ids=" ".join)
def test_help_takes_less_than_a_second_of_the_processor(words):
    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run("-m", "gedi", *words).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 1


def test_every_room_is_there_when_asked_for():
    assert set(gedi.__all__) <= set(dir(gedi))
    for name in gedi.__all__:
        found = getattr(gedi, name)
        assert found.__name__ == (f"gedi.{name}" if isinstance(found, ModuleType) else name)
    with pytest.raises(AttributeError, match="no attribute 'lossess'"):
        gedi.lossess  # noqa: B018


def test_the_version_is_that_of_the_package_and_what_it_stands_on(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gedi", "--version"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said == f"gedi {gedi.__version__} (torch {torch.__version__}, python {platform.python_version()})\n"


def test_names_that_are_told_before_the_imports_are_those_that_work():
    assert get_args(Shape) == tuple(SHAPES)
    assert get_args(KnownImages) == tuple(CATALOGUE)
    for method in METHODS:
        assert parse({"method": method}).method == method
    for name, given in PRESETS.items():  # what a listing shows is what a run does
        config = parse(preset(name))
        assert (given["data"]["name"], given["n_init"]) == (config.data.name, config.n_init)
    assert all(callable(subject(name)) for name in SUBJECTS)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("gedi ru", ["run"]),
        ("gedi run cir", ["circles", "circles-paper"]),
        ("gedi presets moo", ["moons", "moons-paper"]),
        ("gedi table toy-", ["toy-shapes", "toy-ablation"]),
        ("gedi data get c", ["cifar10", "cifar100"]),
        ("gedi bench lo", ["losses", "logic"]),
        ("gedi evaluate r --part ", ["probe", "fid", "ood"]),
        ("gedi run circles --prec", ["--precision"]),
        ("gedi run circles --precision b", ["bf16-mixed"]),
        ("gedi run circles --set walk.ste", ["walk.steps="]),
        ("gedi run circles --set method=no-nf-", ["method=no-nf-no-train-1", "method=no-nf-2-enc"]),
        ("gedi run circles --set augment.flip=", ["augment.flip=true", "augment.flip=false"]),
        ("gedi run circles --set density.st", ["density.steps=", "density.step_size="]),
        ("gedi run circles --set density.kind=", ["density.kind=energy", "density.kind=kernel", "density.kind=none"]),
        ("gedi run circles --set stage2.it", ["stage2.iterations="]),
        ("gedi run circles --set stage1.density.g", ["stage1.density.generative="]),
        ("gedi run circles --set stage2.terms.swapped.e", [f"stage2.terms.swapped.{k}=" for k in EPSILONS]),
        ("gedi run circles --set stage2.terms.swapped.look=w", ["stage2.terms.swapped.look=walk"]),
        ("gedi run circles --set stage2.moves.align.d", ["stage2.moves.align.decode="]),
        ("gedi run circles --set parts.swapped.e", [f"parts.swapped.{k}=" for k in EPSILONS]),
    ],
)
def test_the_shell_completes_names(monkeypatch, capsys, words, offered):
    monkeypatch.setenv("_GEDI_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", words)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert [word.partition('"')[0] for word in said.split("((")[1].split('"')[1::2] if word.strip()][
        : len(offered)
    ] == offered


def test_nothing_is_offered_that_is_not_there():
    assert cli.setting("stages") == cli.setting("stage2.terms=") == cli.setting("parts=") == []
    for offered in cli.setting(""):
        key = offered.removesuffix("=")
        said = []  # of the value, or of another key that goes with it; by the density that the key is of
        for kind in ([], ["density={kind: kernel}"]) if key.startswith("density.") else ([],):
            with pytest.raises(UserError) as refused:
                parse(override(preset("addition-100-paper"), [*kind, f"{key}={{wrong: 1}}"]))
            said.append(str(refused.value))
        assert any("unknown key" not in one for one in said)
    assert cli.any_of(PRESETS)("x") == []
    assert cli.any_of(TABLES)("") == list(TABLES)


@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is bash's")
def test_completion_can_be_shown_for_a_shell():
    script = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m gedi --show-completion; true"], capture_output=True, text=True, timeout=60
    ).stdout
    assert "_GEDI_COMPLETE=complete_bash" in script
    assert script.rstrip().endswith("gedi")


def test_types_are_shipped():
    assert (Path(gedi.__file__).parent / "py.typed").is_file()
