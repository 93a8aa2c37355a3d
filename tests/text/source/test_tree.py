"""Plain scalars: the types of the YAML 1.2 core schema, restricted to JSON."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.source.json_tree import JsonTree, parse_json
from bespeak.text.source.tree import (
    MAX_DIGITS,
    NUMERIC,
    WORDS,
    Lines,
    Location,
    NumberTooLarge,
    Span,
    TextEdit,
    apply_edits,
    deletion,
    detect_notation,
    insertion,
    location_of,
    plain_value,
    without_collections,
)


@rows(
    "text, value",
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
    with pytest.raises(NumberTooLarge):
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


@rows(
    "text, notation",
    ('{"agis": "1.0"}', "json"),
    ("\ufeff\n  [1]", "json"),
    ("", "yaml"),
    ("agis: '1.0'\nendpoints: []\n", "yaml"),
    ("endpoints:\n  - method: BOOK\n    path: /account/{id}\n", "yaml"),
    ("output: { a, b }\n", "yaml"),
    ("input:\n  required: [size (integer, minimum: 1)]\n", "yaml"),
    ("input:\n  required:\n    - size (integer)\n", "yaml"),
    ("   BOOK /room {\n", "braces"),
    ("agis: '1.0'\nendpoints:\n\n  BOOK /room/{id} {\n", "braces"),
    ("vocabulary {\n", "braces"),
    ("input:\n  required:\n    - size  (integer, minimum: 1)\n", "braces"),
    ("output:\n  status   (string)\n", "braces"),
)
def test_notation_is_detected(text: str, notation: str) -> None:
    assert detect_notation(text) == notation


@pytest.mark.parametrize("part", ["a ", "input:\n", "- a(:", "\n", "A /{", "- a (x:", " "])
def test_only_the_start_of_a_long_text_is_examined(part: str) -> None:
    # A pattern that looks at the whole text takes time that grows with its square, and ends in the timeout.
    assert detect_notation(part * 1_000_000) == detect_notation(part * 10_000)


TEXT = '{"a/b": [10, {"~": 20}], "c": {}}'


def tree() -> JsonTree:
    parsed = parse_json(TEXT, "x.json")
    assert isinstance(parsed, JsonTree)
    return parsed


@rows(
    "at, key, value",
    ("", None, TEXT),
    ("/a~1b", '"a/b"', '[10, {"~": 20}]'),
    ("/a~1b/0", "10", "10"),
    ("/a~1b/1/~0", '"~"', "20"),
    ("/c", '"c"', "{}"),
)
def test_a_pointer_leads_to_the_key_and_the_value(at: str, key: str | None, value: str) -> None:
    def written(span: Span | None) -> str | None:
        return TEXT[span.start : span.end] if span else None

    assert (written(tree().key_span(at)), written(tree().value_span(at))) == (key, value)


@pytest.mark.parametrize("at", ["/x", "/a~1b/2", "/a~1b/-1", "/a~1b/x", "/c/0", "/a~1b/0/0", "/a/b"])
def test_a_pointer_that_leads_nowhere_has_no_place(at: str) -> None:
    assert (tree().place(at), tree().key_span(at), tree().value_span(at)) == (None, None, None)


def read(seen: list[bool]) -> None:
    with without_collections():
        seen.append(gc.isenabled())
        raise ValueError("broken")


def test_collector_is_paused_and_restored() -> None:
    seen: list[bool] = []
    with pytest.raises(ValueError, match="broken"):
        read(seen)
    assert (seen, gc.isenabled()) == ([False], True)


def test_disabled_collector_stays_disabled() -> None:
    gc.disable()
    try:
        with without_collections(), without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_edits_are_made_in_the_order_of_their_places_and_the_first_of_two_that_overlap() -> None:
    made = [deletion(4, 5), insertion(0, "<"), TextEdit(Span(1, 3), "x"), insertion(6, ">")]
    assert apply_edits("abcdef", made) == "<axdf>"
    assert apply_edits("abcdef", [TextEdit(Span(2, 5), "y"), TextEdit(Span(1, 3), "x")]) == "axdef"
    assert apply_edits("ab", [insertion(1, "x"), insertion(1, "y")]) == "axyb"


@given(st.text(), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.text(max_size=3))))
def test_untouched_text_is_unchanged(text: str, drawn: list[tuple[int, int, str]]) -> None:
    places = [(min(one, other, len(text)), min(max(one, other), len(text)), new) for one, other, new in drawn]
    after = apply_edits(text, [TextEdit(Span(start, end), new) for start, end, new in places])
    first = min((start for start, _, _ in places), default=len(text))
    last = max((end for _, end, _ in places), default=len(text))
    assert after.startswith(text[:first])
    assert after.endswith(text[last:])


TEXTS = st.text("ab\n\r\u2028", max_size=20)


@given(TEXTS, st.integers(0, 20), st.integers(0, 5))
def test_lines_and_columns_match_an_editor(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    place = location_of(text, "x", start, end)
    lines = text.split("\n")
    assert sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1 == start
    assert sum(len(line) + 1 for line in lines[: place.end_line - 1]) + place.end_column - 1 == end
    assert place.column <= len(lines[place.line - 1]) + 1
    assert Lines(text, "x").location(start, end) == place


def test_location_may_lack_an_end_and_is_printed_by_its_start() -> None:
    assert location_of("a\nb", "x", 2) == Location("x", 2, 1) == Lines("a\nb", "x").location(2)
    assert str(Location("x", 2, 1, 2, 9)) == "x:2:1"
