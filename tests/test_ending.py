"""How the program ends: one line and a code, whatever happens and whenever it is stopped."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from gedi import cli
from gedi.ending import ctrl_c_held, one_line, run_to_its_end
from gedi.errors import DivergenceError, EndedElsewhere, ProcessLost, UserError
from gedi.tables import TABLES, engine


def raising(error):
    def program():
        raise error

    return program


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("so it is"), 2, "gedi: so it is"),
        (UserError("so it is\n  and so"), 2, "gedi: so it is and so"),
        (EndedElsewhere("said by another"), 2, None),
        (DivergenceError("it diverged"), 3, "gedi: it diverged"),
        (ProcessLost("another is gone"), 4, "gedi: another is gone, so this one ends; go on from the last checkpoint"),
        (KeyboardInterrupt(), 130, "stopped"),
        (SystemExit(7), 7, None),
        (SystemExit(), 0, None),
        (BrokenPipeError(), 141, None),
        (PermissionError(13, "Permission denied", "here"), 2, "gedi: Permission denied: 'here'"),
        (OSError(28, "No space left on device"), 2, "gedi: [Errno 28] No space left on device"),
        (OSError(18, "Invalid cross-device link", "a", None, "b"), 2, "gedi: Invalid cross-device link: 'a' to 'b'"),
        (MemoryError(), 2, "gedi: there is not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 2, "gedi: there is not enough memory"),
        (RecursionError("maximum recursion depth exceeded"), 2, "gedi: what was given is nested too deeply"),
        (json.JSONDecodeError("Expecting value", "", 0), 2, "gedi: a file cannot be read as JSON: Expecting value"),
        (yaml.YAMLError("a tab"), 2, "gedi: a file cannot be read as YAML: a tab"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 2, "gedi: text cannot be read or written"),
        (EOFError(), 2, "gedi: a file ends too early"),
        (KeyError("x"), 1, "gedi: this is a fault of gedi, not yours: KeyError: 'x'; run it with GEDI_TRACEBACK=1"),
        (AssertionError(), 1, "gedi: this is a fault of gedi, not yours: AssertionError; run it"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_error_has_a_code_and_at_most_a_line(capsys, error, code, said):
    assert run_to_its_end(raising(error)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == (said is not None)
    assert err.startswith(said or "")


def test_a_fault_shows_its_place_to_who_asks(capsys, monkeypatch):
    monkeypatch.setenv("GEDI_TRACEBACK", "1")
    assert run_to_its_end(raising(KeyError("x"))) == 1
    err = capsys.readouterr().err
    assert "in program" in err
    assert "Traceback" in err


def test_a_line_is_one_printable_and_short():
    assert one_line("a\r\n\n b\tc\x1b[2J\udcff") == r"a b\tc\x1b[2J\udcff"
    assert one_line(f"bad {'x' * 10**6} name") == f"bad {'x' * 200}...{'x' * 200} name"
    assert len(one_line("word " * 10**5)) < 5000


def program(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "gedi", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


@pytest.mark.parametrize("words", ["presets", "presets circles", "--help", "data list"])
def test_a_reader_that_leaves_is_no_error(words):
    command = f"{sys.executable} -m gedi {words} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.returncode in (0, 141)  # it may have ended before the reader did


def test_a_full_disk_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gedi", "presets", "circles"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (2, "gedi: [Errno 28] No space left on device\n")


def test_names_that_the_terminal_cannot_write_are_escaped():
    variables = {**os.environ, "PYTHONIOENCODING": "ascii"}
    out, err = program("run", "mönster", env=variables).communicate(timeout=60)
    assert (out, err.partition(":")[0]) == ("", "gedi")
    assert r"m\xf6nster" in err


def test_no_arguments_show_the_help(monkeypatch, capsys):
    for words in ([], ["data"]):
        monkeypatch.setattr(sys, "argv", ["gedi", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert (ended.value.code, err) == (2, "")
        assert "Usage: gedi" in out


TINY = [
    *("data.n_train=300", "data.n_test=100", "stage1.iterations=20", "stage2.iterations=20", "walk.steps=5"),
    *("density.buffer=500", "n_init=1"),
]
OPTIONS = [word for setting in TINY for word in ("--set", setting)]


def stoppable(process):
    """Whether it has begun: Python itself does not catch SIGTERM."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


def signalled(process, number, seconds):
    """What it says if it gets a signal so many seconds after it began."""
    while process.poll() is None and not stoppable(process):
        time.sleep(0.001)
    time.sleep(seconds)
    os.killpg(process.pid, number)
    try:
        return process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="asks Linux when the program has begun")
def test_a_run_stopped_in_its_first_seconds_says_one_line_and_leaves_nothing_half(tmp_path):
    moments = random.Random(0)
    run = ("run", "circles", "--out", tmp_path / "run", "--resume", *OPTIONS)
    for attempt in range(6):
        number = (signal.SIGINT, signal.SIGTERM)[attempt % 2]
        process = program(*run)
        out, err = signalled(process, number, moments.uniform(0.5 * attempt, 0.5 * attempt + 0.5))
        if process.returncode != 0:  # else it was done before
            assert process.returncode == 128 + number, err
            assert out == ""
            assert err.startswith("stopped")
            assert err.count("\n") == 1
        assert not list(tmp_path.rglob("*.tmp"))
    last = program(*run)
    out, err = last.communicate(timeout=120)
    assert last.returncode == 0, err
    assert (tmp_path / "run" / "report.html").is_file()


def test_signals_are_caught_before_anything_is_imported():
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import signal, sys\n"
            "signal.signal = lambda *_: (print(sorted(sys.modules)), sys.exit())\n"
            "from gedi.__main__ import main\nmain()",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "gedi.ending" in found.stdout
    assert "typer" not in found.stdout


def test_a_signal_that_comes_out_of_an_import_as_another_error_ends_all_the_same(tmp_path):
    """Compiled modules turn what is thrown into their imports into an ImportError, or lose it."""
    (tmp_path / "swallows.py").write_text(
        "import os, signal\n"
        "try:\n    os.kill(os.getpid(), signal.SIGTERM)\n    sum(range(10**6))\n"
        "except BaseException:\n    raise ImportError('something odd') from None\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from gedi.ending import end_on_signals\nend_on_signals()\nimport swallows\nprint('on')",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "stopped\n")


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="asks Linux which processes there are")
def test_a_stopped_table_takes_its_processes_with_it(tmp_path):
    process = program("table", "toy", "--seeds", 1, "--jobs", 2, "--out", tmp_path / "table")
    while process.poll() is None and not _children(process.pid):
        time.sleep(0.02)
    time.sleep(0.5)  # they are importing
    workers = _children(process.pid)
    _, err = signalled(process, signal.SIGINT, 0)
    assert process.returncode == 130, err
    assert err.splitlines()[1:] == ["stopped"]
    assert "Traceback" not in err
    until = time.monotonic() + 20  # multiprocessing's own helper ends a moment after the program
    while time.monotonic() < until and any(map(_lives, workers)):
        time.sleep(0.02)
    assert not [pid for pid in workers if _lives(pid)]


def _lives(pid):
    return Path(f"/proc/{pid}").exists()


def _children(parent):
    found = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in found.read_text().split()] if found.is_file() else []


def test_a_table_whose_worker_is_killed_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "run_cell", _die)
    with pytest.raises(UserError, match=r"ended from outside.*--jobs 1"):
        engine.write_table(TABLES["toy"], "toy", profile="laptop", seeds=range(1), out=tmp_path, jobs=2)


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_ctrl_c_waits_for_the_end_of_a_block():
    passed = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it
    try:
        with pytest.raises(KeyboardInterrupt), ctrl_c_held():  # noqa: PT012
            os.kill(os.getpid(), signal.SIGINT)
            passed.append("the middle")
    finally:
        signal.signal(signal.SIGINT, before)
    assert passed == ["the middle"]


JOINED = """
import atexit
from gedi.ending import end_with, end_without_taking_apart, run_to_its_end
class Joined:
    def __del__(self):
        print("taken apart")
def program():
    joined = Joined()
    {keep}
    {then}
atexit.register(print, "at exit")
end_with(run_to_its_end(program))
"""


@pytest.mark.parametrize("then", ["pass", "raise ValueError('x')", "raise SystemExit(3)"])
def test_what_joins_processes_is_never_taken_apart_and_the_rest_of_the_end_is_as_ever(then):
    said = {}
    for keep in ("pass", "end_without_taking_apart(joined)"):
        program = JOINED.format(keep=keep, then=then)
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        said[keep] = (ended.returncode, ended.stderr, "at exit" in ended.stdout, "taken apart" in ended.stdout)
    usual, kept = said.values()
    assert usual[:3] == kept[:3]
    assert usual[3]
    assert not kept[3]
