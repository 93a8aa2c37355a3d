"""Values on one line of YAML, read back as they were; what YAML and JSON cannot both say is not written."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.value_text import LONGEST_KEY, string_text, yaml_key, yaml_value
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(alphabet="a:# -'\"\\{}[],&*!|>%@`?~\t\n\u2028\x85")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def read(text: str) -> Any:
    tree = parse_yaml(text, "x")
    assert isinstance(tree, YamlTree), (tree, text)
    return tree.data


@given(VALUES, st.sampled_from(["", "'", '"']), st.booleans())
def test_a_value_is_read_back_in_a_block_and_in_brackets(value: Any, style: str, flow: bool) -> None:
    written = yaml_value(value, style=style, flow=flow)
    assert written is not None
    assert read(f"[{written}]\n" if flow else f"k: {written}\n") == ([value] if flow else {"k": value})


@given(TEXTS, st.booleans())
def test_a_key_is_read_back(key: str, flow: bool) -> None:
    written = yaml_key(key, flow=flow)
    assert written is not None
    assert read(f"{{{written}: 1}}\n" if flow else f"{written}: 1\n") == {key: 1}


@pytest.mark.parametrize(
    ("text", "style", "written"),
    [
        ("Book a room", "", "Book a room"),
        ("no", "", '"no"'),
        ("12", "", '"12"'),
        ("a: b", "", '"a: b"'),
        ("it's", "'", "'it''s'"),
        ("a\nb", "'", '"a\\nb"'),
        ("a\u2028b", "", '"a\\u2028b"'),
    ],
)
def test_text_keeps_its_style_if_possible(text: str, style: str, written: str) -> None:
    assert string_text(text, style=style) == written


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", {1: 2}, b"a", {"k" * (LONGEST_KEY + 1): 1}])
def test_inexpressible_value_is_refused(value: Any) -> None:
    assert yaml_value(value) is None
    assert yaml_value([value]) is None


def test_key_too_long_for_yaml_is_refused() -> None:
    assert yaml_key("k" * LONGEST_KEY) == "k" * LONGEST_KEY
    assert yaml_key("k" * (LONGEST_KEY + 1)) is None
