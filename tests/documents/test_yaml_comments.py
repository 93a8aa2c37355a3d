"""Comments of a YAML text, and the entries they belong to."""

from __future__ import annotations

import pytest

from bespeak.documents.yaml_text import comment_texts, read_comments
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml


def tree_of(text: str) -> YamlTree:
    tree = parse_yaml(text, "x")
    assert isinstance(tree, YamlTree), tree
    return tree


@pytest.mark.parametrize(
    "text",
    [
        "a: 'x # y'\n",
        'a: "x # y"\n',
        "a: x#y\n",
        "a: |\n  # text\n  more\n",
        "a: >-\n  text\n\n  # text\n",
        "'# a': 1\n",
        "a: [\"# x\", '#']\n",
    ],
)
def test_number_sign_inside_a_string_is_not_a_comment(text: str) -> None:
    assert comment_texts(tree_of(text)) == []


@pytest.mark.parametrize(
    ("text", "above", "beside"),
    [
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
    ],
)
def test_comment_belongs_to_the_next_entry_or_the_one_on_its_line(
    text: str, above: dict[str, tuple[str, ...]], beside: dict[str, str]
) -> None:
    tree = tree_of(text)
    comments = read_comments(tree, tree.data)
    assert (comments.above, comments.beside) == (above, beside)


def test_comments_at_the_start_and_the_end_stay_there() -> None:
    tree = tree_of("# one\n\n# two\n\na: 1\n# three\n# four\n")
    comments = read_comments(tree, tree.data)
    assert comments.at_top == ("# one", "", "# two", "")
    assert comments.at_end == ("# three", "# four")


def test_comment_of_a_removed_entry_moves_to_its_parent() -> None:
    tree = tree_of("a:\n  # x\n  b: 1\n  c: 2 # y\nd: 3\n")
    comments = read_comments(tree, {"a": {}, "d": 3})
    assert comments.above == {"/a": ("# x",), "/d": ("# y",)}
    assert comments.beside == {}


def test_key_of_thousands_of_digits_is_not_a_list_index() -> None:
    tree = tree_of(f"a:\n  # x\n  ? '{'9' * 5000}'\n  : 1\nb: 2\n")
    assert read_comments(tree, {"a": [1], "b": 2}).above == {"/a": ("# x",)}
