"""Text from the path and the query becomes the JSON value a property asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.runtime.route import plan_coercions, read_boolean, read_integer, read_number


@given(st.integers() | st.integers(-(10**298), 10**298))
def test_every_integer_is_read_back(number: int) -> None:
    assert read_integer(str(number)) == number


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert [read_integer(text) for text in ("2.0", "-3.00", "1800000000.0")] == [2, -3, 1800000000]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_back(number: float) -> None:
    assert read_number(repr(number)) == number


@pytest.mark.parametrize(
    "text", ["", "-", "+", "1.5", "1.", ".0", "-.0", "1.0.0", "٣", "1_000", "0x10", " 1", "1" * 301, "²"]
)
def test_an_invalid_integer_stays_text_for_the_schema_to_refuse(text: str) -> None:
    assert read_integer(text) == text


@pytest.mark.parametrize("text", ["", "inf", "nan", "-Infinity", "one", "1e999", "1_0", " 1.5", "1.", ".5"])
def test_text_without_a_json_number_stays_text(text: str) -> None:
    assert read_number(text) == text


def test_only_the_two_words_are_booleans() -> None:
    assert [read_boolean(text) for text in ("true", "false", "True", "1", "")] == [True, False, "True", "1", ""]


def test_only_properties_with_another_type_than_text_are_read() -> None:
    schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "u": {"type": ["integer", "null"]}}}
    assert plan_coercions(schema) == {"n": read_integer, "u": read_integer}
    assert plan_coercions({}) == {}
