"""Code actions for findings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from lsprotocol import types
from tests.app.lsp import texts
from tests.cases import rows
from tests.process import ROOT

from bespeak.app.lsp.completion import to_diagnostic
from bespeak.app.lsp.server import FIX_ALL, QUICK_FIX, code_actions, fix_all, ignore_edits, is_safe
from bespeak.text.source.tree import apply_edits

ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text()
DOCUMENT = types.OptionalVersionedTextDocumentIdentifier("file:///rooms.agis", 7)


def actions(rule: str, only: Sequence[str] | None = None) -> list[types.CodeAction]:
    known, positions, number = texts.found(ROOMS, rule)
    found = to_diagnostic(known.findings[number], positions)
    context = types.CodeActionContext([found], only=only)
    params = types.CodeActionParams(types.TextDocumentIdentifier(DOCUMENT.uri), found.range, context)
    return code_actions(known, DOCUMENT, params, positions, texts.checked)


def test_safe_repair_is_preferred_an_unsafe_one_named_so_and_an_ignore_follows_the_repairs() -> None:
    first = actions("P321")[0]
    assert (first.title, first.kind, first.is_preferred) == ("Write /room (P321)", QUICK_FIX, True)
    assert first.diagnostics[0].code == "P321"
    first = actions("M211")[0]
    assert first.title == "Write BOOK (M211, unsafe: review it)"
    assert not first.is_preferred
    titles = [action.title for action in actions("P321")]
    assert titles == ["Write /room (P321)", "Ignore P321 here", "Fix all safe problems"]


@rows(
    "only, kinds",
    (["quickfix"], {QUICK_FIX}),
    (["source"], {FIX_ALL}),
    (["source.fixAll"], {FIX_ALL}),
    ([FIX_ALL], {FIX_ALL}),
    (["refactor"], set()),
    (["source.fixAll.other"], set()),
)
def test_only_the_kinds_asked_for_are_offered(only: list[str], kinds: set[str]) -> None:
    assert {action.kind for action in actions("P321", only)} == kinds


def test_an_edit_names_the_version_it_is_for() -> None:
    for action in actions("P321"):
        assert action.edit.document_changes is not None
        (change,) = action.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document == DOCUMENT


def test_safe_repairs_are_made_until_there_are_none_and_unsafe_ones_are_left_alone() -> None:
    before = texts.checked(ROOMS)
    assert any(map(is_safe, before.findings))
    text = fix_all(before, texts.checked)
    after = texts.checked(text)
    assert not any(map(is_safe, after.findings))
    assert "P321" not in texts.rules(after)
    assert "method: BOOKING" in text


def test_text_without_repairs_stays_and_repairs_that_undo_each_other_come_to_an_end() -> None:
    text = texts.yaml()
    assert fix_all(texts.checked(text), texts.checked) == text
    before = texts.checked(ROOMS)
    assert fix_all(before, lambda _: before) == ROOMS


ENDPOINT = """[endpoint]
method = "BOOK"
path = "/room/book"
description = "Books a room."
errors = []

[endpoint.semantic]
intent = "Books a room for the guest."
actor = "agent"
outcome = "A reservation exists."
confidence = 0.9
impact = "reversible"
is_idempotent = false

[[endpoint.output]]
name = "reservation_id"
type = "string"

[endpoint.handler]
type = "registered_function"
function = "rooms.book"
"""
BRACES = """agis: "1.0"
service: "Acme"
agtp: "agtp://acme.example"

BOOK /room {
  semantic {
    intent: "Books a room for the guest"
    actor: agent
    outcome: "A reservation exists"
  }
  input { required: [room_id (string)] }
  output { reservation_id (string) }
  errors { room_unavailable }
}

vocabulary {
  declared_verbs: [BOOK, HOLD]
}
"""


def ignored(text: str, rule: str, name: str = "rooms.agis") -> str:
    known, positions, number = texts.found(text, rule, name)
    edits = ignore_edits(known.findings[number], known, positions)
    assert edits
    after = apply_edits(text, edits)
    assert rule not in texts.rules(texts.checked(after, name)), after
    return after


SEVERAL_LINES = texts.yaml().replace("path: /room\n", 'path: "/room/\\\n      "\n')


@rows(
    "text, rule, name, part",
    (texts.yaml(path="/room/"), "P321", "rooms.agis", "path: /room/  # bespeak: ignore[P321]\n"),
    (SEVERAL_LINES, "P321", "rooms.agis", "    # bespeak: ignore[P321]\n    path:"),
    (ENDPOINT, "P302", "book.toml", 'path = "/room/book"  # bespeak: ignore[P302]\n'),
    (BRACES, "V502", "rooms.agis", "[BOOK, HOLD]  # bespeak: ignore[V502]\n"),
    (texts.json(path="/room/"), "P321", "rooms.agis", '"P321": ""'),
)
def test_an_ignore_is_written_as_the_notation_has_it(text: str, rule: str, name: str, part: str) -> None:
    after = ignored(text, rule, name)
    assert part in after
    assert ('"x-bespeak-ignore"' in after) is text.startswith("{")


def test_second_ignored_rule_joins_the_first_and_windows_line_ends_stay() -> None:
    text = texts.yaml(path="/Room/").replace("path: /Room/", "path: /Room/  # bespeak: ignore[P302, P321] theirs")
    rule = next(rule for rule in texts.rules(texts.checked(text)) if rule.startswith("P") and rule != "P321")
    assert f"ignore[P302, P321, {rule}] theirs" in ignored(text, rule)
    text = texts.yaml(path="/room/").replace("\n", "\r\n")
    after = ignored(text, "P321")
    assert after.count("\r\n") == after.count("\n")


@pytest.mark.parametrize("known", ['{ "M299": "x" }', '["P302"]'])
def test_json_adds_to_the_key_it_has(known: str) -> None:
    text = texts.json(path="/room/").replace('"path":', f'"x-bespeak-ignore": {known},\n      "path":')
    assert ignored(text, "P321").count("x-bespeak-ignore") == 1


@pytest.mark.parametrize(("text", "rule"), [("agis: [", "D102"), ("a: 1  # bespeak: ignore[P302]\n", "D190")])
def test_a_finding_that_no_ignore_hides_is_not_ignored(text: str, rule: str) -> None:
    known, positions, number = texts.found(text, rule)
    assert ignore_edits(known.findings[number], known, positions) == []
