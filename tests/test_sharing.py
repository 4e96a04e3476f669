"""Models that leave the machine: folders and cards, a hub, ONNX."""

import json
import pickle
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from gedi import GEDI
from gedi.errors import UserError
from gedi.sharing import export_onnx, pull, push
from gedi.sharing.hub import FILES
from gedi.sharing.onnx_export import check_onnx

X, _ = make_blobs(200, 5, centers=3, random_state=0)


@pytest.fixture(scope="module")
def model():
    return GEDI(3, iterations=30, random_state=0).fit(X)


def test_a_folder_holds_the_model_and_a_card(model, tmp_path):
    model.save(tmp_path / "m")
    assert {path.name for path in (tmp_path / "m").iterdir()} == set(FILES)
    card = (tmp_path / "m" / "README.md").read_text()
    for wanted in (model.verdict_.word, model.results_["fingerprint"]["train"]["digest"], "torch", "preset: table"):
        assert wanted in card
    again = GEDI.load(tmp_path / "m")
    for asked in ("predict", "score_samples", "outlier_score", "transform"):
        np.testing.assert_array_equal(getattr(again, asked)(X), getattr(model, asked)(X))
    assert again.get_params() == model.get_params()
    assert again.verdict_ == model.verdict_
    with pytest.raises(UserError, match="fit it again"):
        again.report(tmp_path / "page.html")


def test_a_model_from_before_borders_were_kept_tells_outliers_as_now(model, tmp_path):
    model.save(tmp_path / "m")
    path = tmp_path / "m" / "estimator.json"
    held = json.loads(path.read_text())
    del held["border"]
    path.write_text(json.dumps({**held, "median": held["offset"] + 1}))  # of the log density, in those days
    again = GEDI.load(tmp_path / "m")
    np.testing.assert_allclose(again.outlier_score(X), model.outlier_score(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("estimator.json", b"{}", "is missing"),
        ("estimator.json", pickle.dumps({}), "no JSON"),
        ("config.json", b"[]", "cannot be used"),
        ("model.safetensors", pickle.dumps({"a": 1}), "checksum"),
    ],
)
def test_damaged_files_are_refused(model, tmp_path, name, content, said):
    model.save(tmp_path / "m")
    (tmp_path / "m" / name).write_bytes(content)
    with pytest.raises(UserError, match=said):
        GEDI.load(tmp_path / "m")


def test_a_pickle_is_no_model(model, tmp_path):
    class Harm:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harmed",))

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(UserError, match="a model is a folder"):
        GEDI.load(tmp_path / "model.pkl")
    with pytest.raises(UserError, match="must exist"):
        GEDI.load(tmp_path / "nowhere")
    assert not (tmp_path / "harmed").exists()


def test_a_frame_kind_from_a_stranger_is_no_import(model, tmp_path):
    model.save(tmp_path / "m")
    path = tmp_path / "m" / "estimator.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "frame": "os"}))
    with pytest.raises(UserError, match="frame"):
        GEDI.load(tmp_path / "m")


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub that is a folder."""
    held = tmp_path / "hub"

    class HfApi:
        def __init__(self, token=None):
            self.token = token

        def create_repo(self, name, private, exist_ok):
            if "/" not in name:
                raise ValueError(f"{name} is no owner/name")
            (held / name).mkdir(parents=True, exist_ok=exist_ok)

        def upload_folder(self, repo_id, folder_path, allow_patterns):
            for name in allow_patterns:
                (held / repo_id / name).write_bytes((Path(folder_path) / name).read_bytes())
            return f"hub/{repo_id}"

    def snapshot_download(name, revision, token, allow_patterns):
        if not (held / name).is_dir():
            raise OSError(f"404: {name}")
        assert set(allow_patterns) == set(FILES)
        return str(held / name)

    fake = types.SimpleNamespace(HfApi=HfApi, snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return held


def test_a_hub_takes_and_gives(model, hub):
    assert push(model, "me/blobs") == "hub/me/blobs"
    np.testing.assert_array_equal(GEDI.load(pull("me/blobs")).predict(X), model.predict(X))
    with pytest.raises(UserError, match="may read: 404"):
        pull("me/nothing")
    with pytest.raises(UserError, match="may write to: blobs is no"):
        push(model, "blobs")


def test_without_the_package_it_is_said(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match="pip install"):
        pull("me/blobs")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("scaling", ["auto", "cosine"])
def test_what_is_exported_answers_as_torch_does(scaling, tmp_path):
    pytest.importorskip("onnxruntime")
    model = GEDI(3, iterations=10, scaling=scaling, random_state=0).fit(X)
    path = export_onnx(model.fitted_, tmp_path / "m.onnx")
    for n in (1, 7, 200):  # the number of points is free
        assert check_onnx(model.fitted_, path, X[:n]) < 1e-5
    assert check_onnx(model.fitted_, path, X[:9] + 3) < 1e-5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_images_are_exported_too(tmp_path):
    pytest.importorskip("onnxruntime")
    images = torch.rand(40, 1, 8, 8).numpy()
    model = GEDI(2, iterations=4, batch_size=16, random_state=0).fit(images)
    assert check_onnx(model.fitted_, export_onnx(model.fitted_, tmp_path / "m.onnx"), images) < 1e-5
    with pytest.raises(UserError, match=r"end in \.onnx"):
        export_onnx(model.fitted_, tmp_path / "m.pt")
