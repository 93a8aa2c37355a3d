"""The cache of what is made of texts, and the caches of texts that anyone may write."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from bespeak.contract.matching import endpoint_index, needs
from bespeak.contract.schema import validation
from bespeak.contract.schema.validation import compile_schema
from bespeak.text.bounded_cache import BoundedCache
from bespeak.text.language.head_verb import head_verbs

LONG = 200_000


def test_entries_are_kept_until_their_texts_fill_the_cache_and_none_is_larger() -> None:
    cache = BoundedCache[int](2_000)
    assert cache.put("one", 1) == 1
    assert (cache.get("one"), cache.get("two")) == (1, None)
    cache.put(("a" * 400, "b" * 400), 2)
    assert (cache.get("one"), cache.get(("a" * 400, "b" * 400))) == (1, 2)
    cache.put(b"c" * 600, 3)
    assert (cache.get("one"), cache.get(b"c" * 600), len(cache)) == (None, 3, 1)
    assert cache.put("d" * 2_000, 4) == 4
    assert (len(cache), cache.get(b"c" * 600)) == (1, 3)


def _schema(number: int) -> Any:
    return compile_schema({"const": f"{number} {'x' * LONG}"})


@pytest.mark.parametrize("read", [head_verbs, needs.read_need])
def test_long_texts_are_not_kept_whole(read: Callable[[str], object]) -> None:
    text = "x y " * (LONG // 4)
    read(f"find a room {text}")
    tracemalloc.start()
    try:
        for number in range(20):
            read(f"find room {number} {text}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 20 * LONG / 4


def test_caches_of_contracts_are_bounded_in_size(monkeypatch: Any) -> None:
    schemas, documents = BoundedCache[Any](1_000_000), BoundedCache[Any](20_000)
    monkeypatch.setattr(validation, "_cache", schemas)
    monkeypatch.setattr(endpoint_index, "_documents", documents)
    for number in range(10):
        _schema(number)
        endpoint_index._read(f"find {number}", "x" * 2_000, "y" * 2_000)
    assert (len(schemas) <= 4, len(documents) <= 4) == (True, True)
    assert _schema(9) is _schema(9)
