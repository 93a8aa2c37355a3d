"""YAML text has the meaning of its data, for any data."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import check_each, rows
from tests.documents.agis_documents import AWKWARD, texts, values

from bespeak.documents.yaml_text import WIDTH, Comments, comment_texts, read_comments, yaml_text
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


def test_only_short_lists_are_on_one_line_and_a_very_long_key_is_written_explicitly() -> None:
    data = {"verbs": ["BOOK", "FIND"], "long": [f"item number {n}" for n in range(9)], "none": [], "nothing": {}}
    lines = yaml_text(data).splitlines()
    assert lines[:3] == ["verbs: [BOOK, FIND]", "long:", "  - item number 0"]
    assert lines[-2:] == ["none: []", "nothing: {}"]
    data = {"k" * 3000: {"n": 1}, "list": [{"k " * 700: [{"a": 1}]}]}
    assert read(yaml_text(data)) == data


@given(st.lists(st.text("ab:#-'", min_size=1, max_size=12), min_size=2, max_size=80))
def test_a_long_sentence_is_folded_within_the_width(words: list[str]) -> None:
    data = {"outer": [{"intent": " ".join(words)}]}
    text = yaml_text(data)
    assert read(text) == data
    assert max(map(len, text.splitlines())) <= WIDTH


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


def tree_of(text: str) -> YamlTree:
    tree = parse_yaml(text, "x")
    assert isinstance(tree, YamlTree), tree
    return tree


@rows(
    "text",
    "a: 'x # y'\n",
    'a: "x # y"\n',
    "a: x#y\n",
    "a: |\n  # text\n  more\n",
    "a: >-\n  text\n\n  # text\n",
    "'# a': 1\n",
    "a: [\"# x\", '#']\n",
)
def test_number_sign_inside_a_string_is_not_a_comment(text: str) -> None:
    assert comment_texts(tree_of(text)) == []


@rows(
    "text, above, beside",
    ("# t\na: 1\n# x\nb: 2\n", {"/b": ("# x",)}, {}),
    ("a: 1  # x\nb: 2\n", {}, {"/a": "# x"}),
    ("a: # x\n  b: 1\n", {}, {"/a": "# x"}),
    ("a:\n  # x\n  b: 1\n", {"/a/b": ("# x",)}, {}),
    ("a:\n# x\n- 1\n# y\n- 2 # z\n", {"/a/0": ("# x",), "/a/1": ("# y",)}, {"/a/1": "# z"}),
    ("a:\n- # x\n  b: 1\n", {}, {"/a/0": "# x"}),
    ("a:\n-\n  # x - y\n  b: 1\n", {"/a/0/b": ("# x - y",)}, {}),
    ("a: [1, # x\n  2] # y\n", {}, {"/a/0": "# x", "/a/1": "# y"}),
    ("a: | # x\n  text # y\nb: 1\n", {}, {"/a": "# x"}),
    ("a: 'one\n  two' # x\n", {}, {"/a": "# x"}),
    ("a: &n {b: 1} # x\nc: *n # y\n", {}, {"/a/b": "# x", "/c": "# y"}),
    ("--- # t\na: 1\n", {}, {}),
)
def test_comment_belongs_to_the_next_entry_or_the_one_on_its_line(
    text: str, above: dict[str, tuple[str, ...]], beside: dict[str, str]
) -> None:
    tree = tree_of(text)
    comments = read_comments(tree, tree.data)
    assert (comments.above, comments.beside) == (above, beside)


def test_comments_stay_or_move_to_their_parent_also_beside_keys_of_digits() -> None:
    tree = tree_of("# one\n\n# two\n\na: 1\n# three\n# four\n")
    comments = read_comments(tree, tree.data)
    assert comments.at_top == ("# one", "", "# two", "")
    assert comments.at_end == ("# three", "# four")
    tree = tree_of("a:\n  # x\n  b: 1\n  c: 2 # y\nd: 3\n")
    comments = read_comments(tree, {"a": {}, "d": 3})
    assert comments.above == {"/a": ("# x",), "/d": ("# y",)}
    assert comments.beside == {}
    tree = tree_of(f"a:\n  # x\n  ? '{'9' * 5000}'\n  : 1\nb: 2\n")
    assert read_comments(tree, {"a": [1], "b": 2}).above == {"/a": ("# x",)}
