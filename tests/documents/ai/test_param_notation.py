"""Parameters in one line: a round trip, and every notation in use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.checks.lint.rules.manifest import _PARAM
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.ai.param_notation import TYPES, cut, parse_param, read_constraint, split, write_param


@pytest.mark.requirement("AI-3.3-11")
@rows(
    "schema, written",
    ({"type": "string"}, "string, required"),
    ({"type": "string", "format": "uuid", "description": "Who asks."}, "string, required, uuid -- Who asks."),
    ({"type": "integer", "minimum": 1, "maximum": 5, "default": 2}, "integer, required, min 1, max 5, default 2"),
    ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}, "number, required, above 0, multiple of 0.5"),
    ({"enum": ["single", "double"]}, "string, required, single|double"),
    ({"type": "string", "const": "v1"}, "string, required, only v1"),
    ({"type": "string", "default": "a, b -- c"}, 'string, required, default "a, b -- c"'),
    ({"type": "string", "enum": ["a--b", "null"]}, 'string, required, "a--b"|"null"'),
    ({"type": ["string", "null"], "maxLength": 80}, "string, required, max length 80, or null"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer, required, or null"),
    ({"type": ["integer", "string"]}, "integer, required, or string"),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 3}, "array, required, of integer, max 3 items"),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, "array, required, of a|b"),
    ({"$ref": "#/$defs/day"}, "string, required, date"),
    ({}, "string, required, any JSON value"),
    (True, "string, required, any JSON value"),
    ({"type": "object"}, "string, required, JSON object"),
    (
        {
            "type": "object",
            "properties": {"street": {"type": "string"}, "number": {"type": "integer"}, "zip": {"type": "string"}},
            "required": ["street", "number"],
        },
        "string, required, JSON object {street, number: integer, zip?}",
    ),
    (
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"kind": {"enum": ["bed", "cot"]}, "nights": {"$ref": "#/$defs/many"}},
                "required": ["kind", "nights"],
            },
        },
        "array, required, of {kind: bed|cot, nights[]: date}",
    ),
)
def test_a_schema_is_written_in_the_compact_notation(schema: Any, written: str) -> None:
    many = {"type": "array", "items": {"$ref": "#/$defs/day"}}
    root = {"$defs": {"day": {"type": "string", "format": "date"}, "many": many}}
    assert write_param(schema, required=True, root=root) == written


def test_descriptions_enumerations_and_long_texts_are_shortened() -> None:
    schema = {"type": "string", "description": "The name of the guest\n  as it stands in the passport"}
    assert write_param(schema, required=False, longest=30) == "string, optional -- The name of the guest as it..."
    assert write_param(schema, required=False, longest=0) == "string, optional"
    for values in ([f"value-{number}" for number in range(300)], [str(number) for number in range(41)]):
        line = write_param({"type": "string", "enum": values}, required=True)
        assert line == f"string, required, one of {len(values)} values"
        assert "enum" not in parse_param(line).schema
    assert parse_param("string, required, " + "(" * 1_000_000).required


@pytest.mark.parametrize("text", ["", "a", "many words here", "x" * 300, "wide " * 90])
def test_a_cut_text_keeps_its_length(text: str) -> None:
    assert len(cut(text, 40)) <= 40
    assert cut(text, 400) == " ".join(text.split())[:400] or len(text) > 400


COUNTED = {"type": "integer", "default": 10, "maximum": 50}
WILD = [
    # The draft, with either separator.
    ("string, required -- where to", {"type": "string"}, True, "where to"),
    ("string, required — where to", {"type": "string"}, True, "where to"),
    ("integer, optional, default 10, max 50 -- how many", COUNTED, False, "how many"),
    ("string, optional, asc|desc – order", {"type": "string", "enum": ["asc", "desc"]}, False, "order"),
    # The platform's documentation.
    ("City to look in (string, required)", {"type": "string"}, True, "City to look in"),
    ("How many (integer, optional, default: 10)", {"type": "integer", "default": 10}, False, "How many"),
    # The skill.
    ("string (required) — where to", {"type": "string"}, True, "where to"),
    ("integer (optional, default 20) -- how many", {"type": "integer", "default": 20}, False, "how many"),
    # The converters.
    ("string (required - where to)", {"type": "string"}, True, "where to"),
    ("string (optional — where to)", {"type": "string"}, False, "where to"),
    ("boolean (optional)", {"type": "boolean"}, False, ""),
    # Others that are seen or easily guessed.
    ("string", {"type": "string"}, False, ""),
    ("string?", {"type": "string"}, False, ""),
    ("string?, required", {"type": "string"}, False, ""),
    ("string, required: true", {"type": "string"}, True, ""),
    ("string, required=false", {"type": "string"}, False, ""),
    ("string, optional: false", {"type": "string"}, True, ""),
    ("int, required", {"type": "integer"}, True, ""),
    ("Number, Required, min 0", {"type": "number", "minimum": 0}, True, ""),
    ("string[], optional", {"type": "array", "items": {"type": "string"}}, False, ""),
    ("array<integer>, required", {"type": "array", "items": {"type": "integer"}}, True, ""),
    ("array of strings, required", {"type": "array", "items": {"type": "string"}}, True, ""),
    ("date, required -- arrival", {"type": "string", "format": "date"}, True, "arrival"),
    ("string, required, max 200 chars", {"type": "string", "maxLength": 200}, True, ""),
    ("string, required, 3-50 characters", {"type": "string", "minLength": 3, "maxLength": 50}, True, ""),
    ("integer, required, 1-12", {"type": "integer", "minimum": 1, "maximum": 12}, True, ""),
    ("string, required, YYYY-MM-DD", {"type": "string", "format": "date"}, True, ""),
    ("string: where to", {"type": "string"}, False, "where to"),
    ("string required", {"type": "string"}, True, ""),
    ("object, required -- an address", {"type": "object"}, True, "an address"),
    ("string, required, airport code -- where to", {"type": "string"}, True, "airport code where to"),
    # No notation at all.
    ("date of arrival", {}, False, "date of arrival"),
    ("where to (or nowhere)", {}, False, "where to (or nowhere)"),
    ("required", {}, True, "required"),
    ("", {}, False, ""),
]


@pytest.mark.parametrize(("text", "schema", "required", "description"), WILD)
def test_every_notation_in_use_is_read(text: str, schema: dict[str, Any], required: bool, description: str) -> None:
    found = parse_param(text)
    assert (found.schema, found.required, found.description) == (schema, required, description)


def test_objects_are_read_back_as_objects() -> None:
    found = parse_param("string, required, JSON object {street, number: integer, rooms[] {id, beds?: integer}} -- at")
    room = {"type": "object", "properties": {"id": {}, "beds": {"type": "integer"}}, "required": ["id"]}
    parts = {"street": {}, "number": {"type": "integer"}, "rooms": {"type": "array", "items": room}}
    assert found.schema == {"type": "object", "properties": parts, "required": list(parts)}
    assert found.description == "at"


TEXTS = st.text(max_size=12)
NUMBERS = st.integers(-(10**15), 10**15) | st.floats(-1e9, 1e9, allow_nan=False)
DESCRIPTIONS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Z")), min_size=1, max_size=30)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(("string", "integer", "number", "boolean")))
    whole = st.integers(-(10**12), 10**12)
    value = {"string": TEXTS, "integer": whole, "number": NUMBERS, "boolean": st.booleans()}[kind]
    optional: dict[str, st.SearchStrategy[Any]] = {"default": value}
    if kind != "boolean":
        optional["enum"] = st.lists(value, min_size=1, max_size=5, unique=True)
    if kind == "string":
        optional |= dict.fromkeys(("minLength", "maxLength"), st.integers(0, 500))
        optional["format"] = st.sampled_from(("uuid", "date", "date-time", "email", "uri"))
        optional["pattern"] = st.text(min_size=1, max_size=20).filter(
            lambda text: isinstance(compile_schema({"pattern": text}), Validator)
        )
    elif kind != "boolean":
        optional |= dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS)
    return {"type": kind, **draw(st.fixed_dictionaries({}, optional=optional))}


@given(schemas(), st.booleans(), st.none() | DESCRIPTIONS)
def test_written_parameter_is_read_back(schema: dict[str, Any], required: bool, about: str | None) -> None:
    line = write_param({**schema, "description": about} if about else schema, required=required)
    assert _PARAM.match(line), "what the linter of such documents asks for"
    found = parse_param(line)
    assert (found.schema, found.required) == (schema, required)


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.sampled_from(TYPES), max_size=5))
def test_any_field_name_is_read_back(kinds: dict[str, str]) -> None:
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}
    found = parse_param(write_param(schema, required=True)).schema
    assert list(found.get("properties", {})) == list(kinds)


@given(st.text(max_size=200) | st.from_regex(r'(string|array|of|required|[,"({\[\])}|:? -])+', fullmatch=True))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    found = parse_param(text)
    assert isinstance(found.schema, dict)
    assert isinstance(found.description, str)


@rows(
    "text, kind, schema",
    ("min 1", "integer", {"minimum": 1}),
    ("maximum: 2.5", "number", {"maximum": 2.5}),
    (">= 3", "integer", {"minimum": 3}),
    ("at most 9", "integer", {"maximum": 9}),
    ("above 0", "number", {"exclusiveMinimum": 0}),
    ("< 10", "number", {"exclusiveMaximum": 10}),
    ("max 5", "string", {"maxLength": 5}),
    ("max 5", "array", {"maxItems": 5}),
    ("max 5 items", "array", {"maxItems": 5}),
    ("min items 2", "array", {"minItems": 2}),
    ("min length 2", "string", {"minLength": 2}),
    ("maxLength: 20", "string", {"maxLength": 20}),
    ("length 3", "string", {"minLength": 3, "maxLength": 3}),
    ("1..5", "integer", {"minimum": 1, "maximum": 5}),
    ("between 1 and 5", "integer", {"minimum": 1, "maximum": 5}),
    ("multiple of 5", "integer", {"multipleOf": 5}),
    ("default: true", "boolean", {"default": True}),
    ("defaults to en", "string", {"default": "en"}),
    ("default=10", "string", {"default": "10"}),
    ("one of a|b", "string", {"enum": ["a", "b"]}),
    ("1|2|3", "integer", {"enum": [1, 2, 3]}),
    ('"a, b"|c', "string", {"enum": ["a, b", "c"]}),
    ("only x", "string", {"enum": ["x"]}),
    ("uuid", "string", {"format": "uuid"}),
    ("format: date-time", "string", {"format": "date-time"}),
    ("url", "string", {"format": "uri"}),
    ("pattern ^[A-Z]+$", "string", {"pattern": "^[A-Z]+$"}),
    ("unique", "array", {"uniqueItems": True}),
    ("of date", "array", {"items": {"type": "string", "format": "date"}}),
    ("nullable", "string", {"type": ["string", "null"]}),
)
def test_a_constraint_becomes_a_keyword(text: str, kind: str, schema: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    assert read_constraint(text, kind, found)
    assert found == schema


UNKNOWN = ("airport code", "2026-11-16", "min", "default", "a|", "max many", "5-1", "of things", "or else", "1e999")


@rows(
    "text, kind",
    *((text, "string") for text in UNKNOWN),
    ("max -1", "string"),
    ("max 5.5 chars", "string"),
    ("length 1e999", "string"),
    ("min -3 items", "array"),
    ("above 1e999", "number"),
    (f"min -{'9' * 1800}", "number"),
    ("multiple of 0", "number"),
    ("multiple of -1", "number"),
    ("multiple of many", "number"),
    ("pattern (", "string"),
)
def test_unknown_or_invalid_constraint_changes_nothing(text: str, kind: str) -> None:
    found: dict[str, Any] = {"type": kind}
    assert not read_constraint(text, kind, found)
    assert found == {"type": kind}


def test_separators_count_outside_of_quotes_and_brackets() -> None:
    assert split('a, "b, \\", c", {d, e}, [f, (g, h)], i', ",") == ["a", '"b, \\", c"', "{d, e}", "[f, (g, h)]", "i"]
