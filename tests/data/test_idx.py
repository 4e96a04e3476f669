"""The idx format: what was written comes back, and every fault is named."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from idx_bytes import to_idx

from gedi.data.idx import parse_idx, read_idx
from gedi.errors import UserError

GOOD = to_idx(np.arange(6, dtype=np.uint8).reshape(2, 3))


@given(
    arrays.arrays(
        st.sampled_from(["u1", "i1", "i2", "i4", "f4", "f8"]).map(np.dtype),
        arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5),
    )
)
def test_what_was_written_comes_back(values):
    back = parse_idx(to_idx(values), "x")
    assert back.dtype == values.dtype
    assert back.dtype.isnative
    assert back.flags.writeable
    np.testing.assert_array_equal(back, values)


def test_the_format_is_big_endian_with_the_last_index_fastest():
    content = bytes.fromhex("00000B02 00000002 00000003") + bytes.fromhex("0001 0002 0003 0100 FFFF 7FFF")
    assert parse_idx(content, "x").tolist() == [[1, 2, 3], [256, -1, 32767]]


@pytest.mark.parametrize("name", ["a.gz", "a"])
def test_gzip_is_known_by_its_content_not_its_name(tmp_path, name):
    for content in (GOOD, gzip.compress(GOOD)):
        (tmp_path / name).write_bytes(content)
        assert read_idx(tmp_path / name).tolist() == [[0, 1, 2], [3, 4, 5]]


PACKED = gzip.compress(GOOD)
FAULTS = {
    "one byte short": (GOOD[:-1], r"truncated: shape \(2, 3\) is 18 bytes, got 17"),
    "header cut": (GOOD[:9], "truncated: its header must be 12 bytes, got 9"),
    "one byte long": (GOOD + b"\0", r"too long: shape \(2, 3\) is 18 bytes, got 19"),
    "empty": (b"", "must be an idx file, but it begins with nothing"),
    "zeros not there": (b"\1" + GOOD[1:], "begins with 01 00 08 02"),
    "unknown type": (b"\0\0\x0a" + GOOD[3:], "begins with 00 00 0a 02"),
    "a web page": (b"<html>", "begins with 3c 68 74 6d"),
    "gzip cut": (PACKED[:-3], "whole gzip file, but it is corrupt"),
    "gzip changed": (PACKED[:14] + bytes([PACKED[14] ^ 255]) + PACKED[15:], "whole gzip file, but it is corrupt"),
    "gzip header only": (PACKED[:4], "whole gzip file, but it is corrupt"),
    "huge": (bytes([0, 0, 8, 4]) + b"\xff" * 16, "truncated"),  # refused before anything is allocated
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_file(tmp_path, fault):
    content, message = FAULTS[fault]
    (tmp_path / "some-idx").write_bytes(content)
    with pytest.raises(UserError, match=f"some-idx .*{message}.*; get the file again") as caught:
        read_idx(tmp_path / "some-idx")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none-idx' is not there"):
        read_idx(tmp_path / "none-idx")
