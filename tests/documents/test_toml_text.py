"""TOML text means what the data meant."""

from __future__ import annotations

from typing import Any

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.agis_documents import texts

from bespeak.documents.toml_text import find_null, toml_text

_numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_values: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | _numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(texts, _values, max_size=5))
@settings(max_examples=300)
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    text = toml_text(data)
    read = tomli.loads(text)
    assert read == data, text
    assert repr(read) == repr(data) or sorted(read) == sorted(data)


def test_large_tables_get_a_header_and_small_ones_a_line() -> None:
    data = {"endpoint": {"method": "BOOK", "handler": {"type": "f"}, "semantic": {"intent": "word " * 30}, "empty": {}}}
    assert toml_text(data).splitlines()[:5] == [
        "[endpoint]",
        'method = "BOOK"',
        'handler = { type = "f" }',
        "empty = {}",
        "",
    ]
    assert "[endpoint.semantic]" in toml_text(data)


@pytest.mark.parametrize(
    ("data", "at"), [({"a": 1}, None), ({"a": {"b/c": [1, None]}}, "/a/b~1c/1"), (None, ""), ({"a": None}, "/a")]
)
def test_a_null_is_found_where_it_stands(data: Any, at: str | None) -> None:
    assert find_null(data) == at
