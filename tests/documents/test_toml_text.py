"""TOML text has the meaning of its data."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.agis_documents import texts

from bespeak.documents.toml_text import Written, find_null, toml_text

_numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_values: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | _numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(texts, _values, max_size=5))
@settings(max_examples=300)
def test_written_data_is_read_back(data: dict[str, Any]) -> None:
    text = toml_text(data)
    read = tomli.loads(text)
    assert read == data, text
    assert repr(read) == repr(data) or sorted(read) == sorted(data)


def test_large_tables_get_a_header_and_small_ones_a_line() -> None:
    data = {"endpoint": {"method": "BOOK", "handler": {"type": "f"}, "semantic": {"intent": "word " * 30}, "empty": {}}}
    assert toml_text(data).startswith('[endpoint]\nmethod = "BOOK"\nhandler = { type = "f" }\nempty = {}\n\n')
    assert "[endpoint.semantic]" in toml_text(data)


@pytest.mark.parametrize(
    ("data", "at"), [({"a": 1}, None), ({"a": {"b/c": [1, None]}}, "/a/b~1c/1"), (None, ""), ({"a": None}, "/a")]
)
def test_null_is_found_with_its_pointer(data: Any, at: str | None) -> None:
    assert find_null(data) == at


def test_comment_precedes_its_entry() -> None:
    data = {"a": {"b": 1, "c": {"d": 2}}, "e": 3, "f": {"g": {"h": "x" * 90}}}
    comments = {"": ["top"], "/a/c/d": ["inside"], "/e": ["one", "two"], "/a": ["table"], "/f": ["no line of its own"]}
    text = toml_text(data, comments)
    assert tomllib.loads(text) == data
    assert text.splitlines()[:4] == ["# top", "# one", "# two", "e = 3"]
    assert "# table\n[a]\nb = 1\n" in text
    assert "[a.c]\n# inside\nd = 2\n" in text
    assert text.count("#") == 6


def test_shared_table_is_written_the_same_each_time() -> None:
    part = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(9)}}
    data = {"x": {"schema": {"$defs": {"A": part, "B": dict(part)}, "type": "object"}}}
    written: Written = {}
    first = toml_text(data, None, written)
    assert written
    assert toml_text(data, {"/x/other": ["c"]}, written) == first == toml_text(data)


def test_lists_of_tables_are_written_as_sections_where_wanted() -> None:
    steps = [{"method": "FIND", "parameters": {"b": {"c": {"d": 1}}}}, {}]
    data = {"recipe": [{"name": "a", "steps": steps}, {"name": "b"}]}
    text = toml_text(data, sections=("recipe", "steps"))
    assert tomllib.loads(text) == data
    assert text.count("[[recipe]]") == text.count("[[recipe.steps]]") == 2
