"""Vectors of texts: products without numpy, and the vectors of words that are shipped."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.matching import vectors
from bespeak.contract.matching.vectors import WORDS, VectorIndex, installed_backends

TEXTS = ["book a room in a hotel", "cancel the reservation", "", "the weather in Paris", "qzx"]


def lengths(rows: Iterable[Iterable[float]]) -> list[float]:
    return [math.sqrt(sum(value * value for value in row)) for row in rows]


def test_vectors_of_words_have_the_length_one_or_are_zeros_and_do_not_depend_on_order() -> None:
    rows = WORDS.embed(TEXTS)
    assert lengths(rows) == pytest.approx([1, 1, 0, 1, 0])
    assert list(WORDS.embed(["a hotel, in a room: book"])[0]) == pytest.approx(list(rows[0]))


def test_words_of_one_meaning_are_nearer_than_others() -> None:
    index = VectorIndex(WORDS, ["physician", "invoice", "holiday", "automobile"])
    for place, word in enumerate(("doctor", "bill", "vacation", "car")):
        found = index.cosines(word)
        assert found.index(max(found)) == place, word


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=8, max_size=8), max_size=20),
    st.lists(st.floats(-1, 1), min_size=8, max_size=8),
)
def test_products_without_numpy_are_those_of_the_rows(rows: list[list[float]], other: list[float]) -> None:
    wanted = [sum(a * b for a, b in zip(row, other, strict=True)) for row in rows]
    assert list(vectors._Columns(rows).dot(other)) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize(
    "backend", [one for one in installed_backends() if one.name != "minilm"], ids=lambda one: one.name
)
def test_cosines_without_numpy_are_those_with_it(backend: vectors.Backend) -> None:
    rows = [list(map(float, row)) for row in backend.embed(TEXTS)]
    assert list(vectors._Columns(rows).dot(rows[0])) == pytest.approx(
        VectorIndex(backend, TEXTS).cosines(TEXTS[0]), abs=0.005
    )
