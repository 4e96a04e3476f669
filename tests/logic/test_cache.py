"""Compiled circuits on disk."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from gedi.logic import Constraint, cache, cnf, constraint, sdd

CLAUSES = [[1, 2, -3], [-1, 3], [2, 4]]
PROGRAM = "nn(net,[X],Y,[0,1,2]) :: digit(X,Y).\nadd2(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.\n"


def never(*args, **kwargs):
    raise AssertionError("compiled again")


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "circuits"
    monkeypatch.setenv("GEDI_CACHE", str(folder))
    return folder


def without_diagrams(make):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constraint, "_DIAGRAM_FROM", -1)
        parts = [Constraint.from_cnf(CLAUSES), Constraint.from_cnf([[1, 2], [3, 4]])]
        return make(*parts)


MAKERS = {
    "cnf": lambda: Constraint.from_cnf(CLAUSES),
    "problog": lambda: Constraint.from_problog(PROGRAM, "add2(a,b,3)"),
    "and": lambda: without_diagrams(lambda a, b: a & b),
    "or": lambda: without_diagrams(lambda a, b: a | b),
    "not": lambda: without_diagrams(lambda a, b: ~a),
}


def same(a, b):
    log_p = torch.randn(3, len(a.sizes), max(a.sizes), dtype=torch.float64)
    assert torch.equal(a.log_prob(log_p, normalised=False), b.log_prob(log_p, normalised=False))
    assert (a.domains, a.variables, a.n_solutions) == (b.domains, b.variables, b.n_solutions)


@pytest.mark.parametrize("name", MAKERS)
def test_the_second_time_nothing_is_compiled(name, place, monkeypatch):
    first = MAKERS[name]()
    for module, function in ((sdd, "SddManager"), (constraint, "compile_clauses"), (constraint, "compile_program")):
        monkeypatch.setattr(module, function, never)
    monkeypatch.setattr(constraint, "Space", never)
    same(first, MAKERS[name]())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("damage", ["empty", "cut short", "rubbish", "one byte in ten", "a folder", "no arrays"])
def test_a_damaged_file_is_compiled_again_and_replaced(name, damage, place):
    first = MAKERS[name]()
    for file in place.iterdir():
        content = file.read_bytes()
        file.unlink()
        if damage == "a folder":
            file.mkdir()
        elif damage == "no arrays":
            with file.open("wb") as handle:
                np.savez(handle, columns=3)
        else:
            step = bytearray(content)
            step[100::10] = bytes(255 - b for b in step[100::10])
            new = {"empty": b"", "cut short": content[:-60], "rubbish": b"x" * 200, "one byte in ten": bytes(step)}
            file.write_bytes(new[damage])
    same(first, MAKERS[name]())
    if damage != "a folder":
        assert all(cache.load(file.stem) is not None for file in place.glob("*.npz"))
    assert not list(place.glob("*.tmp"))


@pytest.mark.parametrize("position", range(0, 1200, 60))
def test_no_single_wrong_byte_stops_a_construction(position, place):
    first = Constraint.from_cnf(CLAUSES)
    (file,) = place.glob("*.npz")
    content = bytearray(file.read_bytes())
    content[position % len(content)] ^= 0xFF
    file.write_bytes(content)
    again = Constraint.from_cnf(CLAUSES)
    assert again.domains == first.domains
    if cache.load(file.stem) is not None:  # what could be read was right
        same(first, again)


def test_an_empty_name_turns_it_off(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    Constraint.from_cnf(CLAUSES)
    assert cache.folder() is None
    assert list(tmp_path.rglob("*.npz")) == []
    compiled = []
    monkeypatch.setattr(constraint, "compile_clauses", lambda *a: compiled.append(1) or cnf.compile_clauses(*a))
    Constraint.from_cnf(CLAUSES)
    assert compiled


def test_without_a_wish_it_is_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("GEDI_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / name))
    assert cache.folder() == tmp_path / "gedi" / "circuits"


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("GEDI_CACHE", str(file / "below"))  # a file is in the way, for every user
    assert Constraint.from_cnf(CLAUSES).n_solutions == Constraint.from_cnf(CLAUSES).n_solutions
    assert file.read_text() == ""


@pytest.mark.parametrize("moment", ["savez_compressed", "replace"])
def test_a_full_disk_leaves_nothing_behind(moment, place, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np if moment == "savez_compressed" else os, moment, full)
    Constraint.from_cnf(CLAUSES)
    assert list(place.iterdir()) == []


def test_an_interruption_leaves_nothing_behind(place, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Constraint.from_cnf(CLAUSES)
    assert list(place.iterdir()) == []


def test_different_content_has_a_different_name(place):
    Constraint.from_cnf([[1, 3]])
    Constraint.from_cnf([[1, -3]])
    Constraint.from_cnf([[1], [3]])
    Constraint.from_cnf([[1, 3]], variables=4)
    Constraint.from_cnf([[1, 3]], variables=[2, 2])  # values, not Booleans
    Constraint.from_cnf([[1, 3]], variables=[2, 2, 2])
    Constraint.from_cnf([[1, 3]], variables=[3, 2])
    Constraint.from_problog(PROGRAM, "add2(a,b,2)")
    Constraint.from_problog(PROGRAM, "add2(a,b,3)")
    Constraint.from_problog(PROGRAM, "add2(a,b,3)", variables=["b", "a"])
    Constraint.from_problog(PROGRAM.replace("A + B", "A * B"), "add2(a,b,2)")
    assert len(list(place.glob("*.npz"))) == 11
    for make in (lambda a, b: a & b, lambda a, b: a | b, lambda a, b: ~a, lambda a, b: ~b):
        without_diagrams(make)
    assert len(list(place.glob("*.npz"))) == 11 + 4 + 2  # and the two they are made of


def test_names_do_not_enter_but_domains_do_come_back(place):
    Constraint.from_cnf([[1, 4]], variables=["abc", "xy"])
    again = Constraint.from_cnf([[1, 4]], variables=[3, 2])  # the same circuit for other values
    assert len(list(place.glob("*.npz"))) == 1
    assert again.domains == ((0, 1, 2), (0, 1))


def test_nothing_is_pickled(place):
    for make in MAKERS.values():
        make()
    for file in place.glob("*.npz"):
        with np.load(file, allow_pickle=False) as stored:
            assert all(stored[name].dtype != object for name in stored.files)


def test_a_pickle_is_never_opened(place, tmp_path):
    first = Constraint.from_cnf(CLAUSES)
    (file,) = place.glob("*.npz")
    with np.load(file) as stored:
        content = dict(stored)

    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "sprung"), "w")

    with file.open("wb") as handle:
        np.savez(handle, **{**content, "kinds": np.array([Trap()], dtype=object)})
    same(first, Constraint.from_cnf(CLAUSES))
    assert not (tmp_path / "sprung").exists()


def test_processes_may_write_at_once_and_agree_on_the_name(place):
    code = (
        "import sys; from gedi.logic import cache, Constraint\n"
        f"c = Constraint.from_cnf({CLAUSES})\n"
        f"key = next(__import__('pathlib').Path({str(place)!r}).glob('*.npz')).stem\n"
        "for i in range(60):\n"
        "    cache.store(key, c.circuit, {})\n"
        "    assert cache.load(key) is not None\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}) for seed in "12"
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    assert len(list(place.iterdir())) == 1
