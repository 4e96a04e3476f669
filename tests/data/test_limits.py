"""What is given cannot take more memory than it should: known by its checksum first, and unpacked within a limit."""

import gzip
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from hashlib import md5

import pytest

from gedi.data import CATALOGUE, fetch, load_images, verify
from gedi.data.archive import md5_of, read_unpacked
from gedi.data.limits import check_size, check_unpacked, memory_limit
from gedi.errors import UserError

MANY = 2**27  # zeros


def zeros(path, n=MANY):
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(n // 2**20):
            file.write(bytes(2**20))
    return path


def peak(call):
    """The most memory that a call took, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_zeros_in_place_of_a_data_set_take_no_memory(tmp_path, tiny, write):
    write(tmp_path, {name: tiny[name] for name in tiny if "train-labels" not in name})
    zeros(tmp_path / "train-labels-idx1-ubyte.gz")

    def refused():
        with pytest.raises(UserError, match=r"train-labels-idx1-ubyte.gz must be at most 58.6 KiB when unpacked"):
            load_images("tiny", tmp_path)

    assert peak(refused) < MANY / 8
    assert [state.state for state in verify("tiny", tmp_path)] == ["ok", "broken", "ok", "ok"]


def test_a_file_without_an_official_size_is_held_against_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_MEMORY_LIMIT", "10M")

    def refused():
        with pytest.raises(UserError, match=r"must fit in memory.*set GEDI_MEMORY_LIMIT"):
            read_unpacked(zeros(tmp_path / "a.gz"))

    assert peak(refused) < MANY / 4


def test_a_checksum_needs_no_memory(tmp_path):
    path = zeros(tmp_path / "a.gz")
    assert peak(lambda: md5_of(path, raw=True)) < 2**24
    assert md5_of(path, raw=True) == md5(bytes(MANY)).hexdigest()


def test_what_is_downloaded_is_parsed_by_nobody_before_its_checksum_is_right(tmp_path, tiny, web, monkeypatch):
    entry = CATALOGUE["tiny"]

    def parsed(content, name):
        raise AssertionError(f"{name} was parsed")

    files = tuple(replace(file, parse=parsed) for file in entry.files)
    monkeypatch.setitem(CATALOGUE, "tiny", replace(entry, urls=(f"{web.root}/a/",), files=files))
    web.serve("a", {name: content + b"!" for name, content in tiny.items()})
    with pytest.raises(UserError, match="what came is not the official file"):
        fetch("tiny", tmp_path)
    assert list((tmp_path / "tiny").iterdir()) == []


def test_a_server_without_an_end_is_left(tmp_path, tiny, web, monkeypatch):
    monkeypatch.setitem(CATALOGUE, "tiny", replace(CATALOGUE["tiny"], urls=(f"{web.root}/a/",)))
    web.serve("a", tiny)
    web.pages["/a/train-labels-idx1-ubyte.gz"] = (bytes(10**6), None)
    with pytest.raises(UserError, match="what comes is more than the official file"):
        fetch("tiny", tmp_path)
    assert all(path.stat().st_size <= 60_008 for path in (tmp_path / "tiny").iterdir())


def test_every_file_that_is_downloaded_has_a_checksum_and_a_size():
    def all_files(files):
        for file in files:
            yield file
            yield from all_files(file.members)

    for entry in CATALOGUE.values():
        assert all(file.md5 or file.raw_md5 for file in entry.files), entry.name
        sizes = [file.most for layout in entry.layouts for file in all_files(layout)]
        assert all(size is not None and size < 300_000_000 for size in sizes), entry.name
        assert all(url.startswith("https://") for url in entry.urls[:1]) or entry.name == "svhn"


def test_official_sizes_hold_the_official_images():
    for name in ("mnist", "fashion-mnist"):
        assert [file.most for file in CATALOGUE[name].files] == [47_040_016, 60_008, 7_840_016, 10_008]
    for name, pixels in (("svhn", 3072), ("cifar10", 3073), ("cifar100", 3074)):
        entry = CATALOGUE[name]
        assert sum(file.most for file in entry.files) > sum(entry.counts) * pixels


def test_the_limit_is_a_share_of_memory_or_what_is_asked_for(monkeypatch):
    monkeypatch.delenv("GEDI_MEMORY_LIMIT", raising=False)
    assert 2**24 < memory_limit() < 2**44
    for wish, size in {"1000": 1000, "1.5K": 1536, "2 GiB": 2**31, "3tb": 3 * 2**40}.items():
        monkeypatch.setenv("GEDI_MEMORY_LIMIT", wish)
        assert memory_limit() == size
    monkeypatch.setenv("GEDI_MEMORY_LIMIT", "1K")
    check_size(1024, "a")
    with pytest.raises(UserError, match=r"a must fit in memory: it would take 1.0 KiB, the limit is 1.0 KiB"):
        check_size(1025, "a")


def test_packing_by_more_than_real_data_is_refused_unless_it_is_meant(monkeypatch):
    check_unpacked(1000, 2**28, "small.npz")
    check_unpacked(2**24, 2**24 * 50, "sparse.npz")
    with pytest.raises(UserError, match=r"bomb.npz must not unpack to more than 100 times its size.*such as 2G"):
        check_unpacked(2**21, 2**31, "bomb.npz")
    monkeypatch.setenv("GEDI_MEMORY_LIMIT", "2G")
    check_unpacked(2**21, 2**31, "meant.npz")


def test_an_archive_that_unpacks_to_gigabytes_is_refused_within_a_second_and_little_memory(tmp_path):
    """In a process that may have no more than what the program itself needs."""
    script = f"""
import resource, sys
from gedi.data import load_arrays
from gedi.errors import UserError
import zipfile, numpy as np
path = {str(tmp_path / "a.npz")!r}
about = repr(dict(descr="<f4", fortran_order=False, shape=(2**27, 1))).encode().ljust(117)
head = b"\\x93NUMPY\\x01\\x00v\\x00" + about + b"\\n"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as held, held.open("x.npy", "w") as member:
    member.write(head)
    for _ in range(2**9):
        member.write(bytes(2**20))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_arrays(path)
except UserError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    said, grown = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()
    assert "must not unpack to more than 100 times its size" in said
    assert int(grown) < 100  # MiB
