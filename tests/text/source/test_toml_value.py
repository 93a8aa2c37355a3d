"""Values in TOML mean what they meant, and what TOML cannot say is not said."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.value_text import toml_key, toml_value

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(TEXTS, VALUES, st.booleans())
def test_value_on_one_line_is_read_back(key: str, value: Any, literal: bool) -> None:
    name, written = toml_key(key), toml_value(value, literal=literal)
    assert name is not None
    assert written is not None
    assert "\n" not in name + written
    assert tomli.loads(f"{name} = {written}") == {key: value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1e16, "10000000000000000.0"),
        (10**400, str(10**400)),
        (["a", {"b c": 1}], '["a", { "b c" = 1 }]'),
        ({}, "{}"),
        ("\x7f", '"\\u007f"'),
    ],
)
def test_values_are_written_in_the_usual_style(value: Any, text: str) -> None:
    assert toml_value(value) == text


@pytest.mark.parametrize(("text", "written"), [("a\\b", "'a\\b'"), ("it's", '"it\'s"'), ("a\nb", '"a\\nb"')])
def test_literal_string_keeps_its_single_quotes_if_possible(text: str, written: str) -> None:
    assert toml_value(text, literal=True) == written


@pytest.mark.parametrize(
    "value", [None, [None], math.nan, math.inf, "\ud800", {"a": None}, {1: 2}, date(2026, 1, 1), b"a"]
)
def test_value_not_expressible_in_toml_and_json_is_refused(value: Any) -> None:
    assert toml_value(value) is None


def test_key_is_bare_if_possible() -> None:
    assert [toml_key(key) for key in ("a-b_1", "a.b", "", "\ud800")] == ["a-b_1", '"a.b"', '""', None]
