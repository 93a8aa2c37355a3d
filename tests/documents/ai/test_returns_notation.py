"""The structural notation: fields in a line, cut at whole fields, and read back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.documents.ai.param_notation import LONGEST, parse_fields, write_returns

TEXT = {"type": "string"}
ROOM = {"type": "object", "properties": {"id": TEXT, "price": {"type": "integer"}}}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.requirement("AI-3.3-13")
@rows(
    "schema, written",
    (an_object(reservation_id=TEXT), "reservation_id"),
    (an_object(reservation_id=TEXT, rooms={"type": "array", "items": ROOM}), "reservation_id, rooms[] {id, price}"),
    (an_object(tags={"type": "array", "items": TEXT}), "tags[]"),
    (an_object(grid={"type": "array", "items": {"type": "array", "items": ROOM}}), "grid[][] {id, price}"),
    (an_object(room={"anyOf": [{"$ref": "#/$defs/room"}, {"type": "null"}]}), "room {id, price}"),
    ({"type": "array", "items": ROOM}, "[] {id, price}"),
    ({"type": "array"}, "[]"),
    ({"type": "string"}, "string"),
    ({"type": "object"}, "object"),
    ({}, "object"),
    (an_object(**{"a, b": TEXT}), '"a, b"'),
)
def test_fields_are_written_by_name(schema: dict[str, Any], written: str) -> None:
    assert write_returns({**schema, "$defs": {"room": ROOM}}) == written


def test_deep_fields_are_dropped_first_and_deep_nesting_is_limited() -> None:
    deep = an_object(**{f"inner_{number}": TEXT for number in range(60)})
    text = write_returns(an_object(first=deep, second=deep, third=TEXT))
    assert text == "first, second, third" or text.endswith("third")
    assert len(text) <= LONGEST
    assert parse_fields("a {" * 100_000)["type"] == "object"


def test_a_list_that_is_too_long_ends_with_a_whole_field() -> None:
    names = [f"field_number_{number}" for number in range(100)]
    text = write_returns(an_object(**dict.fromkeys(names, TEXT)))
    kept, _, rest = text.rpartition(", ")
    assert rest == "..."
    assert kept.split(", ") == names[: len(kept.split(", "))]
    assert 250 < len(text) <= LONGEST


@pytest.mark.parametrize("length", range(1, 41))
def test_line_never_exceeds_its_limit(length: int) -> None:
    fields = an_object(**{f"{number:02}{'x' * length}": TEXT for number in range(99)})
    for schema in (fields, an_object(**{"y" * length: fields, "z": fields}), {"type": "array", "items": fields}):
        assert len(write_returns(schema)) <= LONGEST


@pytest.mark.parametrize("length", range(280, 300))
def test_braces_count_towards_the_limit(length: int) -> None:
    deep = an_object(a=an_object(b=an_object(**{"x" * length: TEXT})))
    assert len(write_returns(deep)) <= LONGEST


@rows(
    "text, schema",
    ("id, rooms[] {id, price}", {"id": {}, "rooms": {"type": "array", "items": parse_fields("id, price")}}),
    ("id, ...", {"id": {}}),
    ("a {b {c}}", {"a": parse_fields("b {c}")}),
)
def test_fields_are_read_back(text: str, schema: dict[str, Any]) -> None:
    assert parse_fields(text) == {"type": "object", "properties": schema, "required": list(schema)}


@given(st.text(max_size=200) | st.from_regex(r"([a-z]{1,3}|[\[\]{}:?,. \"])+", fullmatch=True))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    assert parse_fields(text)["type"] == "object"


NESTED = st.recursive(
    st.just(TEXT) | st.just({"type": "array", "items": TEXT}),
    lambda inner: st.builds(
        lambda fields: an_object(**fields), st.dictionaries(st.text(min_size=1, max_size=9), inner, max_size=6)
    ),
    max_leaves=40,
)


@pytest.mark.requirement("AI-3.3-12")
@given(NESTED)
def test_any_schema_fits_the_limit(schema: dict[str, Any]) -> None:
    assert 1 <= len(write_returns(schema)) <= LONGEST
