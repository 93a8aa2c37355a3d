"""Plain scalars: the types of the YAML 1.2 core schema, restricted to JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.tree import MAX_DIGITS, NUMERIC, WORDS, TooLarge, plain_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("0", 0),
        ("-12", -12),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0xff", 255),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1e3", -1000.0),
    ],
)
def test_a_word_or_number_has_its_type(text: str, value: Any) -> None:
    assert (plain_value(text), type(plain_value(text))) == (value, type(value))


@pytest.mark.parametrize(
    "text", ["yes", "on", "True", "NULL", "1_000", "12:30", "2026-01-01", ".inf", ".nan", "-", ".", "0b1", "1e", "0o8"]
)
def test_values_typed_only_by_yaml_1_1_are_text(text: str) -> None:
    assert plain_value(text) == text


@pytest.mark.parametrize("text", ["1" * (MAX_DIGITS + 1), "1e999", "-1e999"])
def test_number_without_an_interoperable_value_is_refused(text: str) -> None:
    with pytest.raises(TooLarge):
        plain_value(text)


@given(st.text())
def test_text_other_than_numbers_and_keywords_stays_text(text: str) -> None:
    if text[:1] not in NUMERIC and text not in WORDS:
        assert plain_value(text) == text
    else:
        assert isinstance(plain_value(text), str | int | float | None)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_written_number_is_read_back(number: float) -> None:
    assert plain_value(repr(number)) == number
