"""Vectors of names. These tests count letters instead of using a model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bespeak.checks.alignment.names import make_name
from bespeak.checks.alignment.signals import Vectors

numpy = pytest.importorskip("numpy")


def embed(texts: Sequence[str]) -> object:
    rows = numpy.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], dtype=float)
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


CAR, ACR, DOG = (make_name(text, [text]) for text in ("car", "acr", "dog"))


def test_close_names_are_found_and_distant_ones_are_not() -> None:
    vectors = Vectors(embed, {"a:1": [CAR]}, {"b:1": [ACR], "b:2": [DOG]})
    near = vectors.near()["a:1"]
    assert list(near) == ["b:1"]
    assert near["b:1"][0] == pytest.approx(1.0)
    assert vectors.cosine(CAR, DOG) == 0.0


def test_side_without_terms_has_no_neighbors() -> None:
    assert Vectors(embed, {"a:1": [CAR]}, {}).near() == {}
