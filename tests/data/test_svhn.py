"""SVHN's files: what was written comes back, and every fault is named."""

import io

import numpy as np
import pytest
from scipy.io import savemat

from gedi.data.svhn import parse_mat
from gedi.errors import UserError

X = np.random.default_rng(0).integers(0, 256, (4, 3, 32, 32), dtype=np.uint8)


def to_mat(x, y, **more):
    stream = io.BytesIO()
    savemat(stream, {"X": x, "y": np.array(y, np.uint8)[:, None], **more}, do_compression=True)
    return stream.getvalue()


def official(images):
    return images.transpose(2, 3, 1, 0)  # (n, c, h, w) -> (h, w, c, n)


def test_what_was_written_comes_back_with_ten_for_zero():
    images, digits = parse_mat(to_mat(official(X), [1, 10, 9, 10]), "x")
    np.testing.assert_array_equal(images, X)
    assert digits.tolist() == [1, 0, 9, 0]


GOOD = to_mat(official(X), [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD[: len(GOOD) // 2], "must be a whole MATLAB file, but cannot be read"),
        (GOOD[:3000] + bytes([GOOD[3000] ^ 255]) + GOOD[3001:], "must be a whole MATLAB file, but cannot be read"),
        (b"", "must be a whole MATLAB file"),
        (b"<html>moved</html>", "must be a whole MATLAB file"),
        (to_mat(X, [1, 2, 3, 4]), r"must hold X of shape \(32, 32, 3, n\) in uint8, got \(4, 3, 32, 32\)"),
        (to_mat(official(X) / 255, [1, 2, 3, 4]), "in uint8, got .* in float64"),
        (to_mat(official(X), [0, 1, 2, 3]), "digits 1 to 10 in y, 10 for the digit 0, got 0 to 3"),
    ],
)
def test_a_fault_is_named_with_its_file(content, message):
    with pytest.raises(UserError, match=f"^train.mat .*{message}"):
        parse_mat(content, "train.mat")


def test_what_lacks_an_array_is_refused():
    stream = io.BytesIO()
    savemat(stream, {"X": official(X)})
    with pytest.raises(UserError, match="must hold X and y"):
        parse_mat(stream.getvalue(), "x")
