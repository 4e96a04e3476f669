"""Downloads, from a web server on this machine: whole and official, or nothing."""

import gzip
import hashlib
import stat
from dataclasses import replace

import numpy as np
import pooch
import pytest
from cifar_bytes import to_rows, to_tar
from idx_bytes import to_idx
from rich.progress import Progress

from gedi.data import CATALOGUE, download, fetch, load_images, verify
from gedi.errors import UserError

NAMES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(download, "_CHUNK", 8)


@pytest.fixture
def tiny_on(tiny, web, monkeypatch):
    """The tiny data set at the given folders of the web."""

    def place(*folders):
        urls = tuple(f"{web.root}/{folder}/" for folder in folders)
        monkeypatch.setitem(CATALOGUE, "tiny", replace(CATALOGUE["tiny"], urls=urls))
        return tiny

    return place


def test_every_file_is_got_once(tmp_path, tiny_on, web, capfd, caplog, monkeypatch):
    monkeypatch.setattr(pooch.get_logger(), "handlers", [caplog.handler])
    level = pooch.get_logger().level
    web.serve("a", tiny_on("a"))
    assert fetch("tiny", tmp_path / "new") == tmp_path / "new/tiny"
    assert load_images("tiny", tmp_path / "new").exact
    assert web.asked == [f"/a/{name}" for name in NAMES]
    assert sorted(path.name for path in (tmp_path / "new/tiny").iterdir()) == sorted(NAMES)  # nothing temporary left
    assert stat.S_IMODE((tmp_path / "new/tiny" / NAMES[0]).stat().st_mode) == 0o644
    fetch("tiny", tmp_path / "new")
    assert len(web.asked) == 4
    assert capfd.readouterr() == ("", "")
    assert caplog.messages == []
    assert pooch.get_logger().level == level


def test_files_go_where_the_environment_says(tmp_path, tiny_on, web, monkeypatch):
    web.serve("a", tiny_on("a"))
    monkeypatch.setenv("GEDI_DATA", str(tmp_path))
    assert fetch("tiny") == tmp_path / "tiny"
    assert load_images("tiny").exact


def test_official_files_that_lie_directly_in_the_folder_are_enough(tmp_path, tiny_on, web, write):
    write(tmp_path, tiny_on("a"), compress=False)
    assert fetch("tiny", tmp_path) == tmp_path
    assert web.asked == []


@pytest.mark.parametrize("gives_parts", [True, False])
@pytest.mark.parametrize("announced", ["length", None])
def test_half_a_download_never_counts(tmp_path, tiny_on, web, announced, gives_parts):
    web.gives_parts = gives_parts
    web.serve("a", tiny_on("a"))
    page, length = web.pages[f"/a/{NAMES[2]}"]
    web.pages[f"/a/{NAMES[2]}"] = (page[: length // 2], length if announced else None)
    with pytest.raises(UserError, match=rf"{NAMES[2]} of tiny could not be downloaded \(127.0.0.1:\d+: .*put the file"):
        fetch("tiny", tmp_path)
    left = sorted(path.name for path in (tmp_path / "tiny").iterdir())
    part = [f"{NAMES[2]}.part"] if announced else []  # what claimed to be whole and was not is of no use
    assert left == sorted([*NAMES[:2], *part])
    assert [state.state for state in verify("tiny", tmp_path)] == ["ok", "ok", "missing", "missing"]
    web.pages[f"/a/{NAMES[2]}"] = (page, length)
    fetch("tiny", tmp_path)
    assert load_images("tiny", tmp_path).exact
    assert sorted(path.name for path in (tmp_path / "tiny").iterdir()) == sorted(NAMES)
    assert web.asked == [f"/a/{name}" for name in (*NAMES[:3], *NAMES[2:])]  # what was whole is not got again
    kept = length // 2 // 8 * 8 if announced and gives_parts else 0  # whole chunks
    assert web.sent[3] == length - kept


@pytest.mark.parametrize("begun", ["of another file", "whole", "too long", "empty"])
@pytest.mark.parametrize("gives_parts", [True, False])
def test_a_beginning_that_does_not_fit_is_thrown_away(tmp_path, tiny_on, web, begun, gives_parts):
    web.gives_parts = gives_parts
    web.serve("a", tiny_on("a"))
    page, length = web.pages[f"/a/{NAMES[0]}"]
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / f"{NAMES[0]}.part").write_bytes(
        {"of another file": b"the beginning of another file", "whole": page, "too long": page + b"more", "empty": b""}[
            begun
        ]
    )
    fetch("tiny", tmp_path)
    assert load_images("tiny", tmp_path).exact
    assert sorted(path.name for path in (tmp_path / "tiny").iterdir()) == sorted(NAMES)
    assert length in web.sent[:2]


def test_the_second_place_goes_on_where_the_first_broke_off(tmp_path, tiny_on, web):
    files = tiny_on("a", "b")
    web.serve("a", files)
    web.serve("b", files)
    page, length = web.pages[f"/a/{NAMES[0]}"]
    web.pages[f"/a/{NAMES[0]}"] = (page[:16], length)
    fetch("tiny", tmp_path)
    assert load_images("tiny", tmp_path).exact
    assert web.sent[:2] == [16, length - 16]


def test_cifar_comes_as_its_archive_and_official_files_in_any_layout_are_enough(tmp_path, web, monkeypatch):
    x = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), np.uint8)
    rows = {file.name: to_rows(x + i, [i, 9]) for i, file in enumerate(CATALOGUE["cifar10"].others[0])}
    archive = gzip.compress(to_tar(rows))
    published, bare = CATALOGUE["cifar10"].files[0], CATALOGUE["cifar10"].others[0]
    entry = replace(
        CATALOGUE["cifar10"],
        urls=(f"{web.root}/kriz/",),
        files=(replace(published, md5=hashlib.md5(archive).hexdigest()),),
        others=(tuple(replace(file, raw_md5=hashlib.md5(rows[file.name]).hexdigest()) for file in bare),),
    )
    monkeypatch.setitem(CATALOGUE, "cifar10", entry)
    web.pages["/kriz/cifar-10-binary.tar.gz"] = (archive, len(archive))
    assert fetch("cifar10", tmp_path / "a") == tmp_path / "a/cifar10"
    assert [path.name for path in (tmp_path / "a/cifar10").iterdir()] == ["cifar-10-binary.tar.gz"]
    images = load_images("cifar10", tmp_path / "a")
    assert images.exact
    assert images.train_labels.tolist() == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]
    for name, content in rows.items():
        (tmp_path / "b/cifar10" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "b/cifar10" / name).write_bytes(content)
    assert fetch("cifar10", tmp_path / "b") == tmp_path / "b/cifar10"
    assert len(web.asked) == 1
    (tmp_path / "b/cifar10/cifar-10-batches-bin/test_batch.bin").write_bytes(to_rows(x, [0, 0]))  # somebody's own
    fetch("cifar10", tmp_path / "b")
    assert load_images("cifar10", tmp_path / "b").exact  # the archive, got beside it
    assert len(web.asked) == 2


@pytest.mark.parametrize("fault", ["absent", "half", "other", "page"])
def test_the_second_place_is_asked_when_the_first_fails(tmp_path, tiny_on, web, fault):
    files = tiny_on("a", "b")
    web.serve("b", files)
    if fault != "absent":
        web.serve("a", files)
        page, length = web.pages[f"/a/{NAMES[0]}"]
        other = gzip.compress(to_idx(np.zeros((6, 2, 4), dtype=np.uint8)))
        web.pages[f"/a/{NAMES[0]}"] = {
            "half": (page[: length // 2], length),
            "other": (other, len(other)),
            "page": (b"<html>moved</html>", 18),
        }[fault]
    fetch("tiny", tmp_path)
    assert load_images("tiny", tmp_path).exact
    assert web.asked[:2] == [f"/a/{NAMES[0]}", f"/b/{NAMES[0]}"]


def test_a_file_that_came_decompressed_is_whole_all_the_same(tmp_path, tiny_on, web):
    web.serve("a", tiny_on("a"), compress=False)
    fetch("tiny", tmp_path)
    assert load_images("tiny", tmp_path).exact


def test_every_failure_is_told(tmp_path, tiny_on, web):
    files = tiny_on("a", "b")
    web.serve("b", {name: content[:-1] for name, content in files.items()})
    with pytest.raises(UserError, match=r": HTTP 404; 127.0.0.1:\d+: what came is not the official file\); try again"):
        fetch("tiny", tmp_path)


def test_a_place_that_does_not_answer_is_told_in_a_word(tmp_path, tiny, monkeypatch):
    monkeypatch.setitem(CATALOGUE, "tiny", replace(CATALOGUE["tiny"], urls=("http://127.0.0.1:9/",)))
    with pytest.raises(UserError, match=r"\(127.0.0.1:9: ConnectionError\)"):
        fetch("tiny", tmp_path)


def test_a_broken_file_is_replaced_and_anothers_is_left_alone(tmp_path, tiny_on, web, write):
    files = tiny_on("a")
    web.serve("a", files)
    folder = write(tmp_path / "tiny", files)
    (folder / NAMES[0]).write_bytes(b"half")
    fetch("tiny", tmp_path)
    assert load_images("tiny", tmp_path).exact
    mine = to_idx(np.zeros(6, dtype=np.uint8))
    (folder / NAMES[1]).write_bytes(mine)
    (folder / NAMES[0]).unlink()
    with pytest.raises(UserError, match=rf"{NAMES[1]}' is there but not the official file"):
        fetch("tiny", tmp_path)
    assert (folder / NAMES[1]).read_bytes() == mine
    assert web.asked == [f"/a/{NAMES[0]}"]


def test_a_terminal_sees_the_progress(tmp_path, tiny_on, web, monkeypatch, capsys):
    web.serve("a", tiny_on("a"))
    monkeypatch.setattr(download.sys.stderr, "isatty", lambda: True)
    fetch("tiny", tmp_path)
    shown = capsys.readouterr().err
    assert all(name in shown for name in NAMES)
    assert "100" in shown or "bytes" in shown


def test_a_bar_that_goes_on_counts_what_is_there_already():
    with Progress(disable=True) as progress:
        bar = download._Bar("file", progress)
        bar.begin(30)
        bar.total = 70
        bar.update(20)
        task = progress.tasks[0]
        assert (task.completed, task.total) == (50, 100)
        bar.reset()
        bar.update(70)
        assert (task.completed, task.total) == (100, 100)
