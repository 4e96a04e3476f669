"""Parts are found by their kind: every file of a room is, a wrong name is answered, a stranger's code is not run."""

import importlib
import pkgutil
import sys

import pytest

from gedi import parts
from gedi.config import override, parse, to_yaml
from gedi.densities.density import Density
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.moves.move import Move
from gedi.objectives.objective import Objective
from gedi.parts import allow, find, kinds, path_of
from gedi.presets import preset
from gedi.settings import merge
from gedi.yaml_text import read_yaml

ROOMS = {"gedi.objectives": Objective, "gedi.densities": Density, "gedi.moves": Move}
BASES = {"paired", "shared", "objective", "density", "move"}
EVERY = [(room, kind) for room, base in ROOMS.items() for kind in kinds(room, base)]

STRANGE = '''
from pathlib import Path
from typing import ClassVar

from gedi.objectives.objective import Objective

Path(__file__).with_name("imported").touch()


class Sharp(Objective):
    """Sure of itself."""

    power: int = 2
    shapes: ClassVar[str] = "clusters"
    kind: ClassVar[str] = "sharp"

    def __call__(self, seen, carried=None):
        return -seen.data.logits.softmax(dim=1).pow(self.power).sum(dim=1).mean()


class Other:
    """No part at all."""
'''


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A package from elsewhere that could be imported, and leaves a trace when it is."""
    folder = tmp_path / "strange_losses"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "sharp.py").write_text(STRANGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(parts, "_allowed", set())
    yield folder / "imported"
    for name in [name for name in sys.modules if name.startswith("strange_losses")]:
        del sys.modules[name]


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_of_a_room_is_one_part_with_a_kind_and_is_found_by_it(room):
    names = {module.name for module in pkgutil.iter_modules(importlib.import_module(room).__path__)} - BASES
    found = kinds(room, ROOMS[room])
    assert {cls.__module__.rpartition(".")[2] for cls in found.values()} == names
    assert len(found) == len(names)
    assert {kind.replace("-", "_") for kind in found} == names  # and a file is called as its part is


@pytest.mark.parametrize(("room", "kind"), EVERY)
def test_a_part_is_found_by_its_kind_and_settings_call_it_by_that(room, kind):
    cls = find(kind, room, ROOMS[room])
    assert cls.kind == kind
    assert issubclass(cls, ROOMS[room])
    assert path_of(cls, room) == kind
    assert cls.__doc__


def test_kinds_of_different_rooms_do_not_mix():
    with pytest.raises(UserError, match="unknown objective 'merge'"):
        find("merge", "gedi.objectives", Objective)
    with pytest.raises(UserError, match="unknown density 'swapped'"):
        find("swapped", "gedi.densities", Density)


@pytest.mark.parametrize(
    ("room", "wrong", "says"),
    [
        (
            "gedi.objectives",
            "swaped",
            r"unknown objective 'swaped': did you mean 'swapped'\? Valid: agreement, balance",
        ),
        ("gedi.densities", "enregy", r"unknown density 'enregy': did you mean 'energy'\? Valid: .*energy, .*none"),
        ("gedi.moves", "algin", r"unknown move 'algin': did you mean 'align'\? Valid: align, labels, merge"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest_right_one(room, wrong, says):
    with pytest.raises(UserError, match=says):
        find(wrong, room, ROOMS[room])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("stage2.terms.swaped.weight=1", "unknown objective 'swaped': did you mean 'swapped'"),
        ("stage2.terms.mine={kind: ballance, weight: 1}", "unknown objective 'ballance': did you mean 'balance'"),
        ("stage2.moves.merg.moments=[0.5]", "unknown move 'merg': did you mean 'merge'"),
        ("density.kind=energie", "unknown density 'energie': did you mean 'energy'"),
        ("stage2.terms.swapped.wieght=1", r"unknown key 'swapped\.wieght': did you mean 'swapped\.weight'"),
        ("stage2.terms.swapped=3", "swapped must hold settings such as"),
    ],
)
def test_settings_that_name_no_part_are_answered_the_same(setting, says):
    with pytest.raises(UserError, match=says):
        parse(override(preset("circles"), [setting]))


NAMED = "strange_losses.sharp.Sharp"


def in_a_file(**stage):
    """Settings as a file would have them."""
    return merge(preset("circles"), {"stage2": stage})


@pytest.mark.parametrize(
    "terms",
    [
        {NAMED: {"weight": 1}},
        {"strange_losses": {"sharp": {"Sharp": {"weight": 1}}}},
        {"mine": {"kind": NAMED, "weight": 1}},
        {"mine": {"kind": NAMED, "weight": 0}},
    ],
)
def test_code_from_elsewhere_in_a_file_is_refused_unless_it_is_allowed_and_not_even_imported(terms, stranger):
    with pytest.raises(UserError, match=rf"'{NAMED}' is code from elsewhere, .*allow\('strange_losses'\)"):
        parse(in_a_file(terms=terms))
    with pytest.raises(UserError, match="is code from elsewhere"):
        parse(override(in_a_file(terms=terms), ["stage2.terms.swapped.weight=2", "walk.steps=3"]))
    assert not stranger.exists()
    assert not any(name.startswith("strange_losses") for name in sys.modules)
    allow("strange_losses")
    assert any(type(term).__name__ == "Sharp" for term in parse(in_a_file(terms=terms)).stage2.terms.values())


@pytest.mark.parametrize("room", ["density", "parts", "moves"])
def test_no_other_place_in_a_file_runs_code_from_elsewhere(room, stranger):
    settings = {
        "density": {"density": {"kind": NAMED}},
        "parts": {"parts": {NAMED: {"power": 3}}},
        "moves": {"stage2": {"moves": {NAMED: {"moments": [0.5]}}}},
    }[room]
    with pytest.raises(UserError, match="is code from elsewhere"):
        parse(merge(preset("circles"), settings))
    assert not stranger.exists()


@pytest.mark.parametrize("typed", [f"stage2.terms.{NAMED}.weight=1", f"stage2.terms.mine.kind={NAMED}"])
def test_whoever_types_the_path_trusts_it(typed, stranger):
    parse(
        override(
            preset("circles"), ["stage2.terms.mine={kind: balance, weight: 1}", typed, "stage2.terms.mine.weight=1"]
        )
    )
    assert stranger.exists()


@pytest.mark.parametrize("allowed", ["strange", "strange_losses_too", "sharp"])
def test_to_allow_one_package_allows_no_other(allowed, stranger):
    allow(allowed)
    with pytest.raises(UserError, match="is code from elsewhere"):
        find(NAMED, "gedi.objectives", Objective)
    assert not stranger.exists()


@pytest.mark.parametrize("path", ["os.system", "builtins.eval", "subprocess.Popen", "gedi.config.Config"])
def test_no_module_is_allowed_by_itself(path, stranger):
    with pytest.raises(UserError, match="is code from elsewhere"):
        find(path, "gedi.objectives", Objective)


def test_what_is_allowed_is_found_by_its_path_and_must_be_such_a_part(stranger):
    allow("strange_losses.sharp")
    cls = find(NAMED, "gedi.objectives", Objective)
    assert cls.__name__ == "Sharp"
    assert path_of(cls, "gedi.objectives") == NAMED
    for wrong in ("strange_losses.sharp.Other", "strange_losses.sharp.Nobody", "strange_losses.sharp.Path"):
        with pytest.raises(UserError, match=r"must be a subclass of gedi\.objectives\.objective\.Objective"):
            find(wrong, "gedi.objectives", Objective)
    with pytest.raises(UserError, match=r"must be a subclass of gedi\.moves\.move\.Move"):
        find(NAMED, "gedi.moves", Move)
    with pytest.raises(UserError, match="cannot be imported: No module named"):
        find("strange_losses.blunt.Blunt", "gedi.objectives", Objective)


def test_a_term_from_elsewhere_trains_like_any_other_and_is_written_to_the_settings(stranger):
    allow("strange_losses")
    small = ["data.n_train=200", "data.n_test=50", "stage1.iterations=0", "stage2.iterations=6", "walk.steps=2",
             "density.buffer=200", "log_every=1", "n_init=1"]  # fmt: skip
    config = parse(
        override(preset("circles"), [*small, f"stage2.terms.{NAMED}.weight=0.5", f"stage2.terms.{NAMED}.power=3"])
    )
    term = config.stage2.terms[NAMED]
    assert (term.weight, term.power) == (0.5, 3)
    assert parse(read_yaml(to_yaml(config), "the settings")) == config
    run = prepare(config)
    log = []
    run.trainer.on_log = log.append
    train(run)
    assert len(log) == 6
    assert all(-1 <= record[NAMED] < 0 for record in log)
    weights = run.trainer.course.legs[-1].stage.weights(0.5)
    assert log[-1]["loss"] == pytest.approx(sum(w * log[-1][name] for name, w in weights.items()), rel=1e-5)
