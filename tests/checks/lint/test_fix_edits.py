"""Repairs as edits of a text."""

from __future__ import annotations

import pytest
from tests.cases import rows

from bespeak.checks.lint.fix_edits import apart, edited, fix_edits
from bespeak.documents.yaml_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix
from bespeak.text.source.tree import Change, Span, TextEdit, Tree, deletion, insertion


def tree_of(text: str) -> Tree:
    tree = parse_notation(text, "rooms.agis")
    assert not isinstance(tree, Diagnostic)
    return tree


def test_changes_of_one_fix_are_made_together_and_entries_put_behind_the_last_one() -> None:
    text = "a: {b: 1}\nc: [2]\n"
    tree = tree_of(text)
    made = fix_edits(Fix("x", (Change("append", "/c", 3), Change("rename", "/a/b", key="d"))), tree)
    assert made is not None
    assert edited(text, tree, made) == "a: {d: 1}\nc: [2, 3]\n"
    text = "c:\n- 2  # two\n"
    tree = tree_of(text)
    made = fix_edits(Fix("x", (Change("append", "/c", 3), Change("append", "/c", 4))), tree)
    assert made is not None
    assert edited(text, tree, made) == "c:\n- 2  # two\n- 3\n- 4\n"


@rows(
    "changes",
    (Change("replace", "/none", 1),),
    (Change("replace", "/c", 1), Change("append", "/c", 3)),
    (Change("append", "/e", 3), Change("append", "/e", 4)),
)
def test_fix_that_cannot_be_made_in_place_is_not_made_partly(changes: tuple[Change, ...]) -> None:
    assert fix_edits(Fix("x", changes), tree_of("c: [2]\ne: []\n")) is None


def test_fix_of_a_comment_has_its_edits_ready_and_the_first_of_overlapping_fixes_is_made() -> None:
    text = "a: 1  # gone\n"
    tree = tree_of(text)
    made = fix_edits(Fix("x", (), edits=(deletion(4, 12),)), tree)
    assert made is not None
    assert edited(text, tree, made) == "a: 1\n"
    one, inside, beside, other = (TextEdit(Span(*span), "x") for span in ((5, 9), (6, 7), (9, 12), (20, 21)))
    assert [name for name, _ in apart([("a", [one]), ("b", [inside]), ("c", [beside]), ("d", [other])])] == ["a", "d"]
    assert [name for name, _ in apart([("a", [other, one]), ("b", [insertion(5, ", x")])])] == ["a"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_the_byte_order_mark_stay(mark: str) -> None:
    text = mark + "a: 1\r\nb: x # one\nc:\r\n  - 1\r\nd: 2\r\n"
    tree = tree_of(text)
    made = fix_edits(Fix("x", (Change("append", "/c", 2), Change("replace", "/b", "z"), Change("remove", "/d"))), tree)
    assert made is not None
    assert edited(text, tree, made) == mark + "a: 1\r\nb: z # one\nc:\r\n  - 1\r\n  - 2\r\n"
