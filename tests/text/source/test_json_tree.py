"""JSON with places: strictly RFC 8259, and the place of every value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.source.json_tree import JsonTree, parse_json
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import MAX_BYTES, MAX_DEPTH, Location, SyntaxFault

TEXT = """\
{
  "agis": "1.0",
  "endpoints": [
    {"method": "BOOK", "a/b": {"c\\u0061": [1, -2.5e3, null, true]}}
  ]
}
"""


def tree(text: str) -> JsonTree:
    parsed = parse_json(text, "x.json")
    assert isinstance(parsed, JsonTree), parsed
    return parsed


def fault(text: str) -> SyntaxFault:
    parsed = parse_json(text, "x.json")
    assert isinstance(parsed, SyntaxFault), parsed.data
    return parsed


@rows(
    "at, key, value",
    ("/agis", '"agis"', '"1.0"'),
    ("/endpoints/0/method", '"method"', '"BOOK"'),
    ("/endpoints/0/a~1b/ca", '"c\\u0061"', "[1, -2.5e3, null, true]"),
    ("/endpoints/0/a~1b/ca/1", "-2.5e3", "-2.5e3"),
)
def test_key_and_value_have_their_places(at: str, key: str, value: str) -> None:
    parsed = tree(TEXT)
    for span, expected in ((parsed.key_span(at), key), (parsed.value_span(at), value)):
        assert span is not None
        assert TEXT[span.start : span.end] == expected


def test_missing_value_has_the_place_of_its_parent_and_line_ends_do_not_move_a_place() -> None:
    assert tree(TEXT).locate("/endpoints/0/path/x") == Location("x.json", 4, 5)
    assert tree(TEXT).locate("/service") == Location("x.json", 1, 1)
    assert tree(TEXT).locate("/endpoints/0/a~1b/ca/9") == Location("x.json", 4, 32)
    assert tree('\ufeff{\r\n "a": 1}').locate("/a") == Location("x.json", 2, 7, 2, 8)


@rows(
    "text, line, column, message",
    ("", 1, 1, "a value is expected"),
    ("{", 1, 2, "a key is expected"),
    ('{"a": 1,}', 1, 8, "a comma after the last entry"),
    ("[1,\n]", 1, 3, "a comma after the last entry"),
    ('{"a" 1}', 1, 6, "a ':' is expected"),
    ("[1 2]", 1, 4, "a comma is missing"),
    ('["x', 1, 2, "a text is not closed"),
    ('["\n"]', 1, 3, "a line break or control character"),
    ('["\\q"]', 1, 3, "an escape that JSON does not know"),
    ("{} x", 1, 4, "something follows"),
    ('{"a": 1,\n"a": 2}', 2, 1, 'the key "a" is repeated; line 1'),
    ('{"b": {"a": 1, "\\u0061": 2}}', 1, 16, "is repeated"),
    ("[1, NaN]", 1, 5, "NaN is no JSON value"),
    ("[1, NaN1]", 1, 5, "NaN1 is no JSON value"),
    ("[-Infinity]", 1, 2, "-Infinity is no JSON value"),
    ("[1e999]", 1, 2, "1e999 is too large"),
    (f"[{'9' * 5000}]", 1, 2, "is too large"),
    ('["\\ud800"]', 1, 2, "half a character"),
    ('["\ud800"]', 1, 3, "half a surrogate pair"),
    ("{'a': 1}", 1, 2, "a key is expected"),
    ("// no\n{}", 1, 1, "a value is expected"),
    ("[\0]", 1, 2, "a value is expected"),
    ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), 1, MAX_DEPTH + 1, "nested"),
    ("[" * 1_000_000, 1, MAX_DEPTH + 1, "nested"),
)
def test_fault_has_a_message_and_a_place(text: str, line: int, column: int, message: str) -> None:
    found = fault(text)
    assert (found.location.line, found.location.column) == (line, column)
    assert message in found.message


@pytest.mark.parametrize("text", ["[" + "1," * 2_000_000 + "1]", '"' + "x" * MAX_BYTES + '"'], ids=["items", "long"])
def test_too_large_text_is_refused(text: str) -> None:
    assert fault(text).help


def test_surrogate_pair_is_one_character_and_the_deepest_allowed_document_is_read() -> None:
    assert tree('["\\ud83d\\ude00", "\\\\ud800"]').data == ["😀", "\\ud800"]
    assert tree("[" * MAX_DEPTH + "]" * MAX_DEPTH).value_span("/0" * (MAX_DEPTH - 1)) is not None


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(DATA, st.sampled_from([None, 2]), st.booleans())
def test_every_value_has_its_place(data: Any, indent: int | None, is_ascii: bool) -> None:
    parsed = tree(json.dumps(data, indent=indent, ensure_ascii=is_ascii))
    assert parsed.data == data
    check_places(parsed, data)


def check_places(parsed: JsonTree, data: Any, at: str = "") -> None:
    span = parsed.value_span(at)
    assert span is not None
    assert json.loads(parsed.text[span.start : span.end]) == data
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        if isinstance(key, str):
            place = parsed.key_span(child(at, key))
            assert place is not None
            assert json.loads(parsed.text[place.start : place.end]) == key
        check_places(parsed, value, child(at, key))


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet='a1{}[],:"\\ \nNu', max_size=40))
def test_any_text_is_read_as_the_standard_reader_reads_it_or_refused(text: str) -> None:
    parsed = parse_json(text, "x.json")
    if isinstance(parsed, SyntaxFault):
        assert 0 < parsed.location.line <= text.count("\n") + 1
    else:
        assert parsed.data == json.loads(text)
        assert parsed.value_span("") is not None
