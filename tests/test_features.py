"""Frozen features: wide tables, directions that count, and pretrained networks by name."""

import sys
import types

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.metrics import roc_auc_score
from torch import nn

from gedi import GEDI, features
from gedi.data import Projection, Scaling
from gedi.errors import UserError


def embeddings(n, d, k, noise, seed):
    """Directions around k of them, as embeddings of texts or pictures are."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(k, d)) / np.sqrt(d)
    y = rng.integers(k, size=n)
    z = middle[y] + noise * rng.normal(size=(n, d)) / np.sqrt(d)
    return z / np.linalg.norm(z, axis=1, keepdims=True), y


def test_axes_keep_what_varies_and_how_far_off_a_row_is(g):
    x = torch.randn(400, 5, generator=g) @ torch.randn(5, 40, generator=g)
    x = x - x.mean(dim=0)
    flat = Projection.of(x, 5)
    torch.testing.assert_close(flat.axes.t() @ flat.axes, torch.eye(5), atol=1e-5, rtol=0)
    on = flat(x)[:, :5] * flat.size
    torch.testing.assert_close((on[:200] - on[200:]).norm(dim=1), (x[:200] - x[200:]).norm(dim=1), atol=1e-3, rtol=1e-3)
    assert abs(flat(x).square().mean().item() - 1) < 1e-3
    off = torch.linalg.svd(x)[2][-1]  # a direction that no row has
    assert abs((flat(x[:1] + 3 * off) - flat(x[:1]))[0, -1].item() * flat.size - 3) < 1e-2


def test_only_the_direction_counts_if_asked(g):
    rows = torch.randn(50, 20, generator=g) + 3
    scaling = Scaling.of(rows, "cosine")
    lengths = torch.rand(50, 1, generator=g) + 0.5
    torch.testing.assert_close(scaling(rows * lengths), scaling(rows), atol=1e-5, rtol=1e-5)
    back = scaling.back(scaling(rows))
    torch.testing.assert_close(nn.functional.normalize(back), nn.functional.normalize(rows), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(Scaling.of(rows)(rows * lengths), Scaling.of(rows)(rows), atol=0.1)


def test_rows_of_one_length_are_scaled_together(g):
    rows = torch.randn(200, 30, generator=g)
    rows[:, 0] *= 50  # by its range alone this column would get a factor of its own
    assert isinstance(Scaling.of(rows, "auto").spread, torch.Tensor)
    assert isinstance(Scaling.of(nn.functional.normalize(rows), "auto").spread, float)


def test_embeddings_of_many_columns_are_clustered_and_strange_ones_found(tmp_path):
    z, y = embeddings(700, 400, 6, 4.0, seed=0)
    model = GEDI(6, iterations=60, random_state=0).fit(z[:500])
    told = nmi(y[500:], model.predict(z[500:]))
    assert told > 0.95
    assert told >= nmi(y[500:], KMeans(6, n_init=10, random_state=0).fit(z[:500]).predict(z[500:])) - 0.05
    strange = np.random.default_rng(1).normal(size=(200, 400)) / 20
    asked = np.concatenate([z[500:], strange])
    assert roc_auc_score([0] * 200 + [1] * 200, model.outlier_score(asked)) > 0.9
    assert model.sample(3).shape == (3, 400)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(GEDI.load(tmp_path / "m").score_samples(z), model.score_samples(z))
    with pytest.raises(ValueError, match="400 features"):
        model.predict(z[:, :300])


class Stub(nn.Module):
    """A network as timm makes them, drawn at random."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())

    def forward(self, x):
        assert x.shape[1:] == (3, 24, 24)
        return self.net(x)


@pytest.fixture
def timm(monkeypatch):
    def create_model(name, pretrained, num_classes):
        assert (pretrained, num_classes) == (True, 0)
        if name != "stub":
            raise RuntimeError(f"Unknown model ({name})")
        return Stub()

    about = {"input_size": (3, 24, 24), "mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2)}
    data = types.SimpleNamespace(resolve_model_data_config=lambda network: about)
    monkeypatch.setitem(sys.modules, "timm", types.SimpleNamespace(create_model=create_model, data=data))
    features._extractor.cache_clear()
    yield
    features._extractor.cache_clear()


def pictures(n=60):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (n, 1, 12, 12)).astype(np.uint8)
    images[::2] += 180
    return images


def test_a_pretrained_network_is_named(timm):
    x = pictures()
    plain = Stub()(
        (torch.from_numpy(x).float() / 255).expand(-1, 3, -1, -1).repeat_interleave(2, 2).repeat_interleave(2, 3)
    )
    assert features.features_of("timm:stub", x).shape == plain.shape
    model = GEDI(2, encoder="timm:stub", iterations=60, random_state=0).fit(x)
    assert len(set(model.labels_[::2])) == len(set(model.labels_[1::2])) == 1
    assert model.labels_[0] != model.labels_[1]
    assert model.n_features_in_ == 32


def test_features_of_a_folder_become_a_table(gedi, timm, tmp_path):
    from PIL import Image

    (tmp_path / "pics").mkdir()
    for i, image in enumerate(pictures(9)):
        Image.fromarray(image[0]).save(tmp_path / "pics" / f"{i}.png")
    code, _, err = gedi("embed", tmp_path / "pics", "--encoder", "timm:stub", "-o", tmp_path / "f.csv")
    assert code == 0, err
    header, *lines = (tmp_path / "f.csv").read_text().splitlines()
    assert header.startswith('"file","f0","f1"')
    assert len(lines) == 9
    code, _, err = gedi("embed", tmp_path / "pics", tmp_path / "pics", "--encoder", "timm:stub")
    assert code == 2


class Sentences:
    def __init__(self, name, trust_remote_code):
        assert not trust_remote_code

    def encode(self, texts, convert_to_tensor, show_progress_bar):
        return torch.tensor([[len(text), text.count("a"), 1.0] for text in texts])


def test_texts_have_features_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Sentences))
    features._extractor.cache_clear()
    np.testing.assert_array_equal(features.features_of("st:tiny", ["aa", "b"]), [[2, 2, 1], [1, 0, 1]])
    with pytest.raises(UserError, match="takes texts"):
        features.features_of("st:tiny", [1, 2])
    features._extractor.cache_clear()


def test_names_that_lead_nowhere_are_refused(timm, monkeypatch):
    with pytest.raises(UserError, match="Unknown model"):
        GEDI(2, encoder="timm:nothing").fit(pictures())
    with pytest.raises(UserError, match="unknown kind of encoder 'tim'"):
        GEDI(2, encoder="tim:stub").fit(pictures())
    with pytest.raises(UserError, match="takes images"):
        GEDI(2, encoder="timm:stub").fit(np.zeros((9, 4)))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match="needs the package transformers"):
        GEDI(2, encoder="hf:any").fit(pictures())
