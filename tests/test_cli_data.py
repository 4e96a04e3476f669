"""``gedi data``: what it prints, and how it says no."""

import hashlib
from functools import partial

import pytest

from gedi.data import catalogue

FILES = {
    "train-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 10, 20]),
    "train-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 0]),
    "t10k-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 30]),
    "t10k-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]),
}


@pytest.fixture
def gedi(monkeypatch, gedi, tmp_path):
    monkeypatch.setattr("pooch.os_cache", lambda _: tmp_path / "cache")
    monkeypatch.delenv("GEDI_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sums = {name.removesuffix("-ubyte"): hashlib.md5(content).hexdigest() for name, content in FILES.items()}
    tiny = catalogue.Entry("tiny", "a few", ("http://127.0.0.1:9/",), catalogue._idx_files({}, sums))
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", tiny)
    return partial(gedi, "data")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine" / "tiny").mkdir(parents=True)
    for name, content in FILES.items():
        (tmp_path / "mine" / "tiny" / name).write_bytes(content)
    return tmp_path / "mine"


def test_the_list_names_every_set_and_where_it_is(gedi, folder):
    code, out, err = gedi("list", "--data-dir", folder)
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert (code, err) == (0, "")
    assert set(lines) == {"mnist", "fashion-mnist", "svhn", "cifar10", "cifar100", "tiny"}
    assert lines["tiny"].endswith(str(folder / "tiny"))
    assert lines["mnist"].endswith("not here yet")


def test_what_is_there_is_not_got_again(gedi, folder):
    assert gedi("get", "tiny", "--data-dir", folder) == (0, f"tiny: {folder / 'tiny'}\n", "")


def test_a_download_that_fails_is_one_line_and_code_2(gedi, tmp_path):
    code, out, err = gedi("get", "tiny", "--data-dir", tmp_path / "new")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "could not be downloaded" in err
    assert list((tmp_path / "new" / "tiny").iterdir()) == []


def test_verify_says_how_each_file_stands(gedi, folder):
    code, out, err = gedi("verify", "tiny", "--data-dir", folder)
    assert (code, err, [line.split()[0] for line in out.splitlines()]) == (0, "", ["ok"] * 4)
    (folder / "tiny" / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x02\x05")
    (folder / "tiny" / "t10k-labels-idx1-ubyte").unlink()
    code, out, err = gedi("verify", "tiny", "--data-dir", folder)
    assert code == 2
    assert [line.split()[0] for line in out.splitlines()] == ["ok", "broken", "ok", "missing"]
    assert "is truncated" in out
    assert err == "gedi: tiny must be the official files, but 2 of 4 are; run: gedi data get tiny\n"


@pytest.mark.parametrize("command", ["get", "verify"])
def test_a_name_that_is_not_known_is_corrected(gedi, command):
    code, _, err = gedi(command, "mnits")
    assert code == 2
    assert "did you mean 'mnist'" in err
