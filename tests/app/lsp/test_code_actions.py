"""Code actions for findings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from lsprotocol import types
from tests.app.lsp import texts
from tests.process import ROOT

from bespeak.app.lsp.code_actions import FIX_ALL, QUICK_FIX, code_actions, fix_all, is_safe
from bespeak.app.lsp.diagnostics import to_diagnostic

ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text()
DOCUMENT = types.OptionalVersionedTextDocumentIdentifier("file:///rooms.agis", 7)


def actions(rule: str, only: Sequence[str] | None = None) -> list[types.CodeAction]:
    known, positions, number = texts.found(ROOMS, rule)
    found = to_diagnostic(known.findings[number], positions)
    context = types.CodeActionContext([found], only=only)
    params = types.CodeActionParams(types.TextDocumentIdentifier(DOCUMENT.uri), found.range, context)
    return code_actions(known, DOCUMENT, params, positions, texts.checked)


def test_a_safe_repair_is_preferred() -> None:
    first = actions("P321")[0]
    assert (first.title, first.kind, first.is_preferred) == ("Write /room (P321)", QUICK_FIX, True)
    assert first.diagnostics is not None
    assert first.diagnostics[0].code == "P321"


def test_an_unsafe_repair_is_named_so() -> None:
    first = actions("M211")[0]
    assert first.title == "Write BOOK (M211, unsafe: review it)"
    assert not first.is_preferred


def test_each_finding_offers_an_ignore_after_its_repairs() -> None:
    titles = [action.title for action in actions("P321")]
    assert titles == ["Write /room (P321)", "Ignore P321 here", "Fix all safe problems"]


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        (["quickfix"], {QUICK_FIX}),
        (["source"], {FIX_ALL}),
        (["source.fixAll"], {FIX_ALL}),
        ([FIX_ALL], {FIX_ALL}),
        (["refactor"], set()),
        (["source.fixAll.other"], set()),
    ],
)
def test_only_the_kinds_asked_for_are_offered(only: list[str], kinds: set[str]) -> None:
    assert {action.kind for action in actions("P321", only)} == kinds


def test_an_edit_names_the_version_it_is_for() -> None:
    for action in actions("P321"):
        assert action.edit is not None
        assert action.edit.document_changes is not None
        (change,) = action.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document == DOCUMENT


def test_safe_repairs_are_made_until_there_are_none() -> None:
    before = texts.checked(ROOMS)
    assert any(map(is_safe, before.findings))
    after = texts.checked(fix_all(before, texts.checked))
    assert not any(map(is_safe, after.findings))
    assert "P321" not in texts.rules(after)


def test_unsafe_repairs_are_left_alone() -> None:
    text = fix_all(texts.checked(ROOMS), texts.checked)
    assert "method: BOOKING" in text


def test_a_text_without_repairs_stays() -> None:
    text = texts.yaml()
    assert fix_all(texts.checked(text), texts.checked) == text


def test_repairs_that_undo_each_other_come_to_an_end() -> None:
    before = texts.checked(ROOMS)
    assert fix_all(before, lambda _: before) == ROOMS
