"""Size checks of values."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.schema.validation import is_within


@pytest.mark.parametrize(
    ("value", "parts", "characters"),
    [(1, 1, 0), ("four", 1, 4), ([], 1, 0), ([1, [2]], 4, 0), ({"ab": "c", "d": None}, 3, 4), ([{"a": []}] * 3, 7, 3)],
)
def test_parts_and_characters_are_counted(value: Any, parts: int, characters: int) -> None:
    assert is_within(value, parts=parts, characters=characters)
    assert not is_within(value, parts=parts - 1, characters=characters)
    assert not characters or not is_within(value, parts=parts, characters=characters - 1)


def test_deep_value_does_not_overflow() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert not is_within(value, parts=1000, characters=0)
    assert is_within(value, parts=100_001, characters=0)
    while value:
        value = value.pop()  # taken apart step by step: freeing it at once would recurse
