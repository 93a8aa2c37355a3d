"""The model of sentences computes in single precision, which is several times as fast as double precision."""

from __future__ import annotations

import json
import math

import pytest

np = pytest.importorskip("numpy")
minilm = pytest.importorskip("bespeak.text.language.minilm")

SIZE, INNER = 24, 48
WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "book", "a", "room", "##s")


def small_model() -> minilm.MiniLM:
    """Make a model of random weights, with the names and the shape of the real one."""
    random = np.random.default_rng(3)
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), SIZE),
        "embeddings.position_embeddings.weight": (minilm.LONGEST, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
    }
    linear = {f"attention.self.{one}": (SIZE, SIZE) for one in ("query", "key", "value")}
    linear |= {
        "attention.output.dense": (SIZE, SIZE),
        "intermediate.dense": (INNER, SIZE),
        "output.dense": (SIZE, INNER),
    }
    layers = [f"encoder.layer.{layer}." for layer in range(minilm.LAYERS)]
    for layer in layers:
        for name, shape in linear.items():
            shapes |= {f"{layer}{name}.weight": shape, f"{layer}{name}.bias": shape[:1]}
    for norm in ["embeddings.", *(f"{layer}{part}" for layer in layers for part in ("attention.output.", "output."))]:
        shapes |= {f"{norm}LayerNorm.weight": (SIZE,), f"{norm}LayerNorm.bias": (SIZE,)}
    entries, data = {}, b""
    for name, shape in shapes.items():
        row = random.standard_normal(shape).astype(np.float32).tobytes()
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(row)]}
        data += row
    head = json.dumps(entries).encode()
    files = {"model/model.safetensors": len(head).to_bytes(8, "little") + head + data}
    files["model/vocab.txt"] = "\n".join(WORDS).encode()
    return minilm.MiniLM(files.__getitem__)


def test_vectors_are_computed_in_single_precision_and_do_not_depend_on_their_batch() -> None:
    model = small_model()
    hidden = model._batch([model._numbers("book a room")])
    assert hidden.dtype == np.float32
    together, alone = model.vectors(["book a room", "rooms", "a rooms room"]), model.vectors(["rooms"])
    assert np.allclose(together[1], alone[0], atol=1e-5)
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)


def test_the_normal_distribution_is_that_of_the_textbook() -> None:
    x = np.linspace(-6, 6, 101, dtype=np.float32)
    share = minilm._normal_share(x)
    assert share.dtype == np.float32
    assert np.allclose(share, [0.5 * (1 + math.erf(one / math.sqrt(2))) for one in x], atol=1e-6)
