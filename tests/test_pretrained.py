"""Encoders by name, as transformers and sentence-transformers really make them, with weights drawn at random."""

import json

import numpy as np
import pytest
import torch

from gedi import GEDI, features

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def anew():
    features._extractor.cache_clear()
    yield
    features._extractor.cache_clear()


def test_a_vision_transformer_of_a_folder(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the extra 'pretrained' is not installed")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    network = transformers.ViTModel(transformers.ViTConfig(image_size=16, patch_size=8, **shape)).eval()
    network.save_pretrained(tmp_path)
    half = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    side = {"do_resize": True, "size": {"height": 16, "width": 16}, "do_normalize": True}
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps({"image_processor_type": "ViTImageProcessor", **side, **half})
    )
    images = np.random.default_rng(0).integers(0, 256, (40, 3, 16, 16), dtype=np.uint8)
    found = features.features_of(f"hf:{tmp_path}", images)
    with torch.no_grad():
        expected = network(pixel_values=torch.from_numpy(images).float() / 127.5 - 1).pooler_output
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)
    model = GEDI(2, encoder=f"hf:{tmp_path}", iterations=30, random_state=0).fit(images)
    assert model.predict(images[:5]).shape == (5,)


def test_a_sentence_transformer_of_a_folder(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the extra 'pretrained' is not installed")
    pytest.importorskip("sentence_transformers", reason="the extra 'pretrained' is not installed")
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "a", "cat", "dog", "sat", "ran"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")
    fast.save_pretrained(tmp_path)
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=32, **shape)
    transformers.BertModel(config).save_pretrained(tmp_path)
    found = features.features_of(f"st:{tmp_path}", ["a cat sat", "a dog ran", "a cat sat"])
    assert found.shape == (3, 16)
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-3
