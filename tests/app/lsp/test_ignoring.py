"""Ignoring one finding where it stands."""

from __future__ import annotations

import pytest
from tests.app.lsp import texts

from bespeak.app.lsp.code_actions import ignore_edits
from bespeak.text.source.tree import apply_edits

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


def test_a_comment_is_added_at_the_end_of_the_line() -> None:
    assert "path: /room/  # bespeak: ignore[P321]\n" in ignored(texts.yaml(path="/room/"), "P321")


def test_a_second_rule_joins_the_first() -> None:
    text = texts.yaml(path="/Room/").replace("path: /Room/", "path: /Room/  # bespeak: ignore[P302, P321] theirs")
    rule = next(rule for rule in texts.rules(texts.checked(text)) if rule.startswith("P") and rule != "P321")
    assert f"ignore[P302, P321, {rule}] theirs" in ignored(text, rule)


def test_a_text_of_several_lines_gets_its_comment_above() -> None:
    text = texts.yaml().replace("path: /room\n", 'path: "/room/\\\n      "\n')
    assert "    # bespeak: ignore[P321]\n    path:" in ignored(text, "P321")


def test_toml_and_braces_have_comments() -> None:
    assert 'path = "/room/book"  # bespeak: ignore[P302]\n' in ignored(ENDPOINT, "P302", "book.toml")
    assert "[BOOK, HOLD]  # bespeak: ignore[V502]\n" in ignored(BRACES, "V502")


def test_json_gets_a_key() -> None:
    after = ignored(texts.json(path="/room/"), "P321")
    assert '"x-bespeak-ignore"' in after
    assert '"P321": ""' in after


@pytest.mark.parametrize("known", ['{ "M299": "x" }', '["P302"]'])
def test_json_adds_to_the_key_it_has(known: str) -> None:
    text = texts.json(path="/room/").replace('"path":', f'"x-bespeak-ignore": {known},\n      "path":')
    assert ignored(text, "P321").count("x-bespeak-ignore") == 1


def test_windows_line_ends_stay() -> None:
    text = texts.yaml(path="/room/").replace("\n", "\r\n")
    after = ignored(text, "P321")
    assert after.count("\r\n") == after.count("\n")


@pytest.mark.parametrize(("text", "rule"), [("agis: [", "D102"), ("a: 1  # bespeak: ignore[P302]\n", "D190")])
def test_a_finding_that_no_ignore_hides_is_not_ignored(text: str, rule: str) -> None:
    known, positions, number = texts.found(text, rule)
    assert ignore_edits(known.findings[number], known, positions) == []
