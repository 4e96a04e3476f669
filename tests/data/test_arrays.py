"""Tables from files."""

import numpy as np
import pytest
import torch

from gedi.data import Dataset, load_arrays
from gedi.errors import UserError

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])


def test_every_format_gives_the_same_points(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", x=X, y=np.array(["b", "a", "b"]))
    (tmp_path / "a.csv").write_text("u,label,v\n0,b,1\n2,a,3\n4,b,5\n")
    expected = torch.tensor(X, dtype=torch.float32)
    assert load_arrays(tmp_path / "a.npy")[1] is None
    for name in ("a.npy", "a.npz", "a.csv"):
        assert torch.equal(load_arrays(tmp_path / name)[0], expected)
    for name in ("a.npz", "a.csv"):
        assert load_arrays(tmp_path / name)[1].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"u,v\n1,x\n", "must hold numbers"),
        ("a.csv", b"u,v\n1\n", "line 2 must hold 2 values"),
        ("a.csv", b"u,v\n", "at least one row"),
        ("a.npy", b"not an array", "cannot be read"),
        ("a.txt", b"1 2", "must end in"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_arrays(tmp_path / name)


def test_a_pickled_array_is_never_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"code": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="cannot be read"):
        load_arrays(tmp_path / "a.npy")


def test_a_missing_file_and_a_missing_array_are_named(tmp_path):
    with pytest.raises(UserError, match="is not there"):
        load_arrays(tmp_path / "none.npy")
    np.savez(tmp_path / "a.npz", points=X)
    with pytest.raises(UserError, match="named 'x', got points"):
        load_arrays(tmp_path / "a.npz")


def test_nan_rows_are_counted_and_named():
    x = torch.zeros(5, 2)
    x[3, 1] = torch.nan
    with pytest.raises(UserError, match=r"1 of 5 rows .* row 3"):
        Dataset("mine", x, torch.zeros(2, 2))
