"""YAML text has the meaning of its data, for any data."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import check_each
from tests.documents.agis_documents import AWKWARD, texts, values

from bespeak.documents.yaml_text import WIDTH, Comments, yaml_text
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml


def read(text: str) -> Any:
    tree = parse_yaml(text, "x.agis")
    assert isinstance(tree, YamlTree), (tree, text)
    return tree.data


def same(one: object, other: object) -> bool:
    """Compare values; 1, 1.0 and true differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


@given(st.dictionaries(texts, values, max_size=5))
@settings(max_examples=400)
def test_written_data_is_read_back(data: dict[str, Any]) -> None:
    text = yaml_text(data)
    assert same(read(text), data), text
    assert yaml_text(read(text)) == text


def test_ambiguous_string_stays_a_string_everywhere() -> None:
    def check(text: str) -> None:
        data = {text: text, "list": [text, text], "inner": {"list": [{text: text}, [[text], {"a": text}]]}}
        written = yaml_text(data)
        assert same(read(written), data), written
        # A reader of YAML 1.1, which takes `yes` for a boolean and 12:30:45 for a number, sees texts too.
        assert same(yaml.safe_load(written), data), written

    check_each(AWKWARD, check, name=repr)


@pytest.mark.parametrize(
    ("number", "written"),
    [(0.85, "0.85"), (1, "1"), (1.0, "1.0"), (1e16, "10000000000000000.0"), (0.00001, "0.00001"), (1e300, "1.0e+300")],
)
def test_numbers_are_decimal_and_keep_their_type(number: float, written: str) -> None:
    text = yaml_text({"a": number})
    assert text == f"a: {written}\n"
    assert same(read(text), {"a": number})


def test_only_short_lists_are_written_on_one_line() -> None:
    data = {"verbs": ["BOOK", "FIND"], "long": [f"item number {n}" for n in range(9)], "none": [], "nothing": {}}
    lines = yaml_text(data).splitlines()
    assert lines[:3] == ["verbs: [BOOK, FIND]", "long:", "  - item number 0"]
    assert lines[-2:] == ["none: []", "nothing: {}"]


@given(st.lists(st.text("ab:#-'", min_size=1, max_size=12), min_size=2, max_size=80))
def test_a_long_sentence_is_folded_within_the_width(words: list[str]) -> None:
    data = {"outer": [{"intent": " ".join(words)}]}
    text = yaml_text(data)
    assert read(text) == data
    assert max(map(len, text.splitlines())) <= WIDTH


def test_very_long_key_is_written_explicitly() -> None:
    data = {"k" * 3000: {"n": 1}, "list": [{"k " * 700: [{"a": 1}]}]}
    assert read(yaml_text(data)) == data


def test_comments_are_written_above_and_beside_their_entries() -> None:
    data = {"a": 1, "list": ["x", "z"], "items": [{"b": "word " * 30 + "end"}]}
    comments = Comments(
        above={"/a": ("# first", "# second"), "/list/1": ("# why",), "/items/0/b": ("# inside",)},
        beside={"/a": "# one", "/list": "# all", "/items/0": "# item", "/items/0/b": "# long"},
        at_end=("# end",),
    )
    text = yaml_text(data, comments)
    assert read(text) == data
    assert text.splitlines()[:8] == [
        *("# first", "# second", "a: 1 # one", "list: # all", "  - x", "  # why", "  - z", ""),
    ]
    assert text.splitlines()[8:12] == ["items:", "  - # item", "    # inside", "    b: >- # long"]
    assert text.endswith("# end\n")
