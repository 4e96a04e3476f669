"""Every hostile call ends in one line and exit code 2, and leaves the folder as it was.

The calls are data: a module ``cases_*.py`` beside this file lists them in ``CALLS``.
"""

import importlib
import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest
from calls import Called, Typed

from gedi import cli

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("cases_*.py"))
CALLS = [(module, call) for module in MODULES for call in importlib.import_module(module).CALLS]
IDS = [f"{module.removeprefix('cases_')}: {call.name}" for module, call in CALLS]


@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=IDS)
def test_a_hostile_call_is_refused_in_one_line(call, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if isinstance(call, Called):
        with pytest.raises(call.error) as refused:
            call.call(folder)
        assert type(refused.value).__name__ != "KeyError", "a KeyError quotes its message"
        said = str(refused.value)
        assert said
        assert len(said.splitlines()) == 1, said
    else:
        said = _typed(call, folder, monkeypatch, capsys)
    assert call.says in said


def _typed(call: Typed, folder: Path, monkeypatch, capsys) -> str:
    for name, content in call.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str | bytes):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            content(path)
    before = _listing(folder)
    monkeypatch.setattr(sys, "argv", ["gedi", *shlex.split(call.args)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1, said
    assert _listing(folder) == before, "something was written"
    return said


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and its time of change."""
    found = ((path, path.lstat()) for path in sorted(folder.parent.rglob("*")))
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found if not path.is_dir()}


def test_no_call_stands_twice():
    assert [name for name, times in Counter(IDS).items() if times > 1] == []
