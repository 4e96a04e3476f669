"""Compiled circuits on disk."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
import torch

from gedi.errors import UserError
from gedi.logic import Constraint, cache, cnf, combine, compiled, loaded, sdd

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
        patch.setattr(compiled, "DIAGRAM_FROM", -1)
        parts = [Constraint.from_cnf(CLAUSES), Constraint.from_cnf([[1, 2], [3, 4]])]
        return make(*parts)


MAKERS = {
    "cnf": lambda: Constraint.from_cnf(CLAUSES),
    "problog": lambda: Constraint.from_problog(PROGRAM, "add2(a,b,3)"),
    "and": lambda: without_diagrams(lambda a, b: a & b),
    "or": lambda: without_diagrams(lambda a, b: a | b),
    "not": lambda: without_diagrams(lambda a, b: ~a),
}


def signed(key: str, content: bytes) -> bytes:
    """A file that says of itself that it is right."""
    return cache._checksum(key, content) + content


def same(a, b):
    log_p = torch.randn(3, len(a.sizes), max(a.sizes), dtype=torch.float64)
    assert torch.equal(a.log_prob(log_p, normalised=False), b.log_prob(log_p, normalised=False))
    assert (a.domains, a.variables, a.n_solutions) == (b.domains, b.variables, b.n_solutions)


@pytest.mark.parametrize("name", MAKERS)
def test_the_second_time_nothing_is_compiled(name, place, monkeypatch):
    first = MAKERS[name]()
    for module, function in ((sdd, "SddManager"), (loaded, "compile_clauses"), (loaded, "compile_program")):
        monkeypatch.setattr(module, function, never)
    monkeypatch.setattr(combine, "Space", never)
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
            file.write_bytes(signed(file.stem, safetensors.numpy.save({"columns": np.array([3])})))
        else:
            step = bytearray(content)
            step[100::10] = bytes(255 - b for b in step[100::10])
            new = {"empty": b"", "cut short": content[:-60], "rubbish": b"x" * 200, "one byte in ten": bytes(step)}
            file.write_bytes(new[damage])
    same(first, MAKERS[name]())
    if damage != "a folder":
        assert all(cache.load(file.stem) is not None for file in place.glob("*.circuit"))
    assert not list(place.glob("*.tmp"))


@pytest.mark.parametrize("position", range(0, 1200, 60))
def test_no_single_wrong_byte_stops_a_construction(position, place):
    first = Constraint.from_cnf(CLAUSES)
    (file,) = place.glob("*.circuit")
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
    assert list(tmp_path.rglob("*.circuit")) == []
    compiled = []
    monkeypatch.setattr(loaded, "compile_clauses", lambda *a: compiled.append(1) or cnf.compile_clauses(*a))
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


@pytest.mark.parametrize("moment", ["fdopen", "replace"])
def test_a_full_disk_leaves_nothing_behind(moment, place, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, moment, full)
    Constraint.from_cnf(CLAUSES)
    assert list(place.iterdir()) == []


def test_an_interruption_leaves_nothing_behind(place, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
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
    assert len(list(place.glob("*.circuit"))) == 11
    for make in (lambda a, b: a & b, lambda a, b: a | b, lambda a, b: ~a, lambda a, b: ~b):
        without_diagrams(make)
    assert len(list(place.glob("*.circuit"))) == 11 + 4 + 2  # and the two they are made of


def test_names_do_not_enter_but_domains_do_come_back(place):
    Constraint.from_cnf([[1, 4]], variables=["abc", "xy"])
    again = Constraint.from_cnf([[1, 4]], variables=[3, 2])  # the same circuit for other values
    assert len(list(place.glob("*.circuit"))) == 1
    assert again.domains == ((0, 1, 2), (0, 1))


def contents(file):
    return safetensors.numpy.load(file.read_bytes()[32:])


def change(file, **arrays):
    """Write other arrays into a file, with a checksum that fits."""
    file.write_bytes(signed(file.stem, safetensors.numpy.save({**contents(file), **arrays})))


def test_every_bit_counts(place):
    Constraint.from_cnf(CLAUSES)
    (file,) = place.iterdir()
    content = file.read_bytes()
    assert cache.load(file.stem) is not None
    for position in range(0, len(content), 7):
        for bit in (1, 128):
            damaged = bytearray(content)
            damaged[position] ^= bit
            file.write_bytes(damaged)
            assert cache.load(file.stem) is None, position


def test_every_cut_is_seen(place):
    Constraint.from_cnf(CLAUSES)
    (file,) = place.iterdir()
    content = file.read_bytes()
    for length in (*range(0, len(content), 11), len(content) - 1):
        file.write_bytes(content[:length])
        assert cache.load(file.stem) is None, length
    file.write_bytes(content + b"\0")
    assert cache.load(file.stem) is None


@pytest.mark.parametrize("name", ["cnf", "problog"])
def test_the_file_of_another_rule_does_not_become_this_one(name, place):
    other = {
        "cnf": lambda: Constraint.from_cnf([[1, 2], [3, 4]]),  # over the same variables
        "problog": lambda: Constraint.from_problog(PROGRAM, "add2(a,b,1)"),
    }[name]
    first = MAKERS[name]()
    (file,) = place.iterdir()
    right = file.read_bytes()
    assert other().n_solutions != first.n_solutions or name == "problog"
    (theirs,) = set(place.iterdir()) - {file}
    file.write_bytes(theirs.read_bytes())
    same(first, MAKERS[name]())
    assert file.read_bytes() == right  # mended on the way


LARGE = 2**40
WRONG = {
    "a child after its parent": lambda a: {"children": a["children"] + 1000},
    "a child before the first": lambda a: {"children": a["children"] - 100},
    "a root beyond the last": lambda a: {"roots": np.array([LARGE])},
    "no root": lambda a: {"roots": np.zeros(0, dtype=np.int64)},
    "an unknown kind": lambda a: {"kinds": a["kinds"] + 5},
    "starts that go back": lambda a: {"starts": a["starts"][::-1].copy()},
    "starts beyond the end": lambda a: {"starts": a["starts"] * LARGE},
    "one start too few": lambda a: {"starts": a["starts"][:-1]},
    "fractions": lambda a: {"children": a["children"].astype(np.float64)},
    "a table": lambda a: {"children": a["children"][None]},
    "huge columns": lambda a: {"columns": np.array([LARGE])},
    "no columns": lambda a: {"columns": np.array([0])},
    "more leaves than the rule has": lambda a: {"columns": a["columns"] + 1},
    "two numbers of columns": lambda a: {"columns": np.array([8, 8])},
    "no words": lambda a: {"about": np.zeros(3, dtype=np.uint8)},
    "a list of words": lambda a: {"about": np.frombuffer(b"[1]", dtype=np.uint8)},
}


@pytest.mark.parametrize("damage", WRONG)
@pytest.mark.parametrize("name", ["cnf", "problog"])
def test_a_well_formed_file_with_wrong_content_is_compiled_again(name, damage, place):
    first = MAKERS[name]()
    (file,) = place.iterdir()
    right = file.read_bytes()
    change(file, **WRONG[damage](contents(file)))
    assert file.read_bytes() != right
    same(first, MAKERS[name]())
    assert file.read_bytes() == right


@pytest.mark.parametrize(
    "words",
    [
        {"domains": [[0, 1, 2]]},
        {"domains": [[0, 1, 2], [0, 0, 2]]},
        {"domains": [[0, 1, 2], [0, [1], 2]]},
        {"domains": 3},
        {"variables": ["a"]},
        {"variables": [1, 2]},
        {"queries": []},
        {"queries": ["add2(a,b,3)", "add2(a,b,4)"]},
        {"fixed": [[0.5, 0.5]]},
        {"fixed": "none"},
        {"conditional": True},
        {"conditional": 0},
    ],
)
def test_words_that_do_not_fit_the_circuit_are_not_believed(words, place):
    first = MAKERS["problog"]()
    (file,) = place.iterdir()
    right = file.read_bytes()
    about = json.loads(contents(file)["about"].tobytes())
    for changed in ({**about, **words}, {k: v for k, v in about.items() if k not in words}):
        change(file, about=np.frombuffer(json.dumps(changed).encode(), dtype=np.uint8))
        same(first, MAKERS["problog"]())
        assert file.read_bytes() == right


def test_a_file_without_end_is_not_read_to_it(place, monkeypatch):
    first = Constraint.from_cnf(CLAUSES)
    (file,) = place.iterdir()
    with file.open("r+b") as handle:
        handle.truncate(2**40)  # a sparse file: a terabyte that takes no room
    monkeypatch.setattr(cache, "_LARGEST", 10_000)
    same(first, Constraint.from_cnf(CLAUSES))
    assert file.stat().st_size < 10_000


def test_a_claimed_size_beyond_the_file_is_not_reserved(place):
    first = Constraint.from_cnf(CLAUSES)
    (file,) = place.iterdir()
    header = json.dumps({"kinds": {"dtype": "I64", "shape": [LARGE], "data_offsets": [0, 8 * LARGE]}}).encode()
    for length in (len(header), LARGE, 2**63):
        file.write_bytes(signed(file.stem, length.to_bytes(8, "little") + header))
        same(first, Constraint.from_cnf(CLAUSES))


def test_the_compilers_are_part_of_the_name(monkeypatch):
    name = cache.key_of("cnf", [[1]])
    monkeypatch.setattr(cache, "_compilers", lambda: ["another", "version"])
    assert cache.key_of("cnf", [[1]]) != name


def test_a_file_that_a_rule_loads_is_read_each_time(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = ":- consult('facts.pl').\nnn(net,[X],Y,[0,1]) :: digit(X,Y).\nq(X) :- digit(X,1), rain.\n"
    log_p = torch.zeros(1, 1, 2).log_softmax(2)
    for chance in (0.2, 0.8):
        (tmp_path / "facts.pl").write_text(f"{chance}::rain.\n")
        rule = Constraint.from_problog(program, "q(a)", allow="files")
        assert rule.log_prob(log_p).exp().item() == pytest.approx(0.5 * chance)
    with pytest.raises(UserError, match="must load nothing but"):  # what was once allowed is not so for ever
        Constraint.from_problog(program, "q(a)")


def test_processes_may_write_at_once_and_agree_on_the_name(place):
    code = (
        "import sys; from gedi.logic import cache, Constraint\n"
        f"c = Constraint.from_cnf({CLAUSES})\n"
        f"key = next(__import__('pathlib').Path({str(place)!r}).glob('*.circuit')).stem\n"
        "for i in range(60):\n"
        "    cache.store(key, c.circuit, {})\n"
        "    assert cache.load(key) is not None\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}) for seed in "12"
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    assert len(list(place.iterdir())) == 1
