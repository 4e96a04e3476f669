"""CIFAR's two formats: what was written comes back, and no batch can run code."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from cifar_bytes import to_batch, to_rows

from gedi.data.cifar import parse_batch, parse_rows
from gedi.errors import UserError

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (7, 3, 32, 32), dtype=np.uint8)
Y = [3, 9, 0, 1, 1, 7, 5]


def test_what_was_written_comes_back():
    fine = [99, 0, 50, 1, 2, 3, 4]
    for images, labels in (
        parse_rows(to_rows(X, Y), "x", classes=10),
        parse_batch(to_batch(X, labels=Y, filenames=["a.png"] * 7), "x", classes=10),
    ):
        np.testing.assert_array_equal(images, X)
        assert labels.tolist() == Y
    for images, labels in (
        parse_rows(to_rows(X, Y, fine), "x", classes=100),  # coarse, then fine
        parse_batch(to_batch(X, coarse_labels=Y, fine_labels=fine), "x", classes=100),
    ):
        np.testing.assert_array_equal(images, X)
        assert labels.tolist() == fine


def test_a_row_is_the_label_then_red_green_blue():
    content = bytes([4]) + b"\1" * 1024 + b"\2" * 1024 + b"\3" * 1023 + b"\xff"
    images, labels = parse_rows(content, "x", classes=10)
    assert labels.tolist() == [4]
    assert images.mean(axis=(0, 2, 3)).tolist() == [1, 2, 3 + 252 / 1024]
    assert images[0, 2, 31, 31] == 255


@pytest.mark.parametrize("write", [to_batch, lambda x, **lists: pickle.dumps({"data": x.reshape(7, -1), **lists}, 4)])
def test_a_batch_is_read_as_numpy_would_read_it(write):
    content = write(X, labels=Y)
    held = pickle.loads(content, encoding="latin1")  # our own bytes
    images, labels = parse_batch(content, "x", classes=10)
    np.testing.assert_array_equal(images.reshape(7, -1), held["data"])
    assert labels.tolist() == held["labels"]


class Harmful:
    def __init__(self, call, *args):
        self.what = call, args

    def __reduce__(self):
        return self.what


def test_a_batch_that_would_run_code_is_refused_unrun(tmp_path):
    mark = tmp_path / "ran"
    for harm in (
        Harmful(Path.touch, mark),
        Harmful(eval, f"open({str(mark)!r}, 'w')"),
        Harmful(getattr, "x", "encode"),
        Harmful(np.fromfile, str(mark)),
    ):
        content = pickle.dumps({"data": harm, "labels": Y}, 4)
        with pytest.raises(UserError, match=r"^data_batch_1 must hold nothing but .* asks for .*was not opened"):
            parse_batch(content, "data_batch_1", classes=10)
    assert not mark.exists()


@pytest.mark.parametrize(
    "values", [np.array([{}], dtype=object), np.zeros((7, 3072), np.float32), np.zeros(7, np.dtype([("a", "u1")]))]
)
def test_an_array_of_anything_but_bytes_is_refused(values):
    with pytest.raises(UserError, match=r"^b must hold arrays of uint8"):
        parse_batch(pickle.dumps({"data": values, "labels": Y}, 4), "b", classes=10)


def test_a_batch_cut_anywhere_is_an_error_that_names_it():
    content = to_batch(X[:1], labels=[3])
    for length in [*range(400), *range(len(content) - 60, len(content))]:
        with pytest.raises(UserError, match=r"^cut .*get the file again"):
            parse_batch(content[:length], "cut", classes=10)


@pytest.mark.parametrize(
    ("content", "classes", "message"),
    [
        (to_rows(X, Y)[:-1], 10, r"x is truncated: .* 3073 bytes each, got 21510"),
        (to_rows(X, Y), 100, r"x is truncated: .* 3074 bytes"),
        (b"", 10, "x is truncated"),
        (to_rows(X, [10] * 7), 10, "labels 0 to 9, got 10; it is not a file of CIFAR-10"),
        (to_rows(X, Y, [100] * 7), 100, "labels 0 to 99, got 100"),
    ],
)
def test_a_fault_of_rows_is_named(content, classes, message):
    with pytest.raises(UserError, match=message):
        parse_rows(content, "x", classes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (to_batch(X, fine_labels=Y), "'data' and whole numbers as 'labels'"),
        (to_batch(X, labels=["a"] * 7), "'data' and whole numbers as 'labels'"),
        (to_batch(X, labels=[]), "'data' and whole numbers as 'labels'"),
        (to_batch(X, labels=Y[:-1]), r"3072 bytes for each of its 6 labels, got an array of shape \(7, 3072\)"),
        (to_batch(X[:, :2], labels=Y), r"got an array of shape \(7, 2048\)"),
        (to_batch(X, labels=[-1] * 7), "labels 0 to 9, got -1"),
        (pickle.dumps([1]), "'data' and whole numbers"),
        (b"<html>", "cannot be read"),
    ],
)
def test_a_fault_of_a_batch_is_named(content, message):
    with pytest.raises(UserError, match=f"^x .*{message}"):
        parse_batch(content, "x", classes=10)
