"""What may be typed at the cursor."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from tests.app.lsp import texts
from tests.app.lsp.places import marked
from tests.cases import rows

from bespeak.app.lsp.completion import Completion, guess_kind
from bespeak.app.lsp.cursor import Positions, cursor_at

GOOD = texts.yaml()


def complete(text: str, name: str = "a.agis", good: str = "") -> list[types.CompletionItem]:
    """Return the items, best first; `good` is the last text that could be parsed."""
    text, offset = marked(text)
    known = texts.checked(good, name) if good else None
    tree = known.subject.tree if known and known.subject else None
    cursor = cursor_at(text, offset, name)
    items = Completion(cursor, guess_kind(Path(name), text), Positions(text), known, tree).items()
    return sorted(items, key=lambda item: item.sort_text or "")


def labels(text: str, name: str = "a.agis", good: str = "") -> list[str]:
    return [item.label for item in complete(text, name, good)]


def inserted(text: str, label: str, name: str = "a.agis", good: str = "") -> str:
    """Return the text after an item was chosen."""
    item = next(item for item in complete(text, name, good) if item.label == label)
    text, _ = marked(text)
    assert isinstance(item.text_edit, types.TextEdit)
    positions = Positions(text)
    start, end = positions.offset(item.text_edit.range.start), positions.offset(item.text_edit.range.end)
    return text[:start] + item.text_edit.new_text + text[end:]


def test_verbs_of_the_catalog_are_offered_with_their_descriptions() -> None:
    item = next(item for item in complete("endpoints:\n  - method: BO|") if item.label == "BOOK")
    assert item.detail == "transaction"
    assert isinstance(item.documentation, types.MarkupContent)
    assert item.documentation.value.startswith("**BOOK**")


def test_declared_verbs_come_first_even_in_a_broken_document_and_are_completed_where_declared() -> None:
    assert labels("endpoints:\n  - method: |\n", good=GOOD)[0] == "BOOK"
    assert labels("endpoints:\n  - method: |\n")[0] != "BOOK"
    text = "vocabulary:\n  declared_verbs: [ZAP]\nendpoints:\n  - method: |\n    path: [\n"
    assert labels(text)[0] == "ZAP"
    assert "BOOK" in labels("vocabulary:\n  declared_verbs: [FIND, BO|]\n")
    assert "BOOK" in labels("vocabulary:\n  declared_verbs:\n    - BO|\n")


@rows(
    "text, name, values",
    ("endpoints:\n  - semantic:\n      actor: |", "a.agis", ["agent", "user", "system"]),
    ("endpoints:\n  - semantic:\n      impact_tier: i|", "a.agis", ["informational", "irreversible"]),
    ("endpoints:\n  - semantic:\n      is_idempotent: |", "a.agis", ["true", "false"]),
    ("data_manifest:\n  available_data:\n    - sensitivity: h|", "a.agis", ["high"]),
    ('{"agis": "1.0", "endpoints": [{"semantic": {"actor": "|', "a.json", ["agent", "user", "system"]),
    ("[endpoint.semantic]\nis_idempotent = |", "a.toml", ["true", "false"]),
    ("[endpoint.handler]\ntype = |", "a.toml", ["registered_function", "composition", "external_service"]),
    ("BOOK /room {\n  semantic {\n    actor: |", "a.agis", ["agent", "user", "system"]),
    ("endpoints:\n  - input:\n      type: o|", "a.agis", ["object"]),
)
def test_choices_are_offered(text: str, name: str, values: list[str]) -> None:
    assert labels(text, name) == values


@rows(
    "text, label, name, after",
    ("endpoints:\n  - met|", "method", "a.agis", "endpoints:\n  - method: "),
    ("endpoints:\n  - sem|", "semantic", "a.agis", "endpoints:\n  - semantic:"),
    ("endpoints:\n  - met|: BOOK", "method", "a.agis", "endpoints:\n  - method: BOOK"),
    ('{"agis": "1.0", |', "service", "a.json", '{"agis": "1.0", "service": '),
    ('{"agis": "1.0", "ser|"', "service", "a.json", '{"agis": "1.0", "service"'),
    ("[endpoint]\nmet|", "method", "a.toml", "[endpoint]\nmethod = "),
    ("[endpoint]\nsemantic.act|", "actor", "a.toml", "[endpoint]\nsemantic.actor = "),
    ("BOOK /room {\n  sem|", "semantic", "a.agis", "BOOK /room {\n  semantic {"),
    ("endpoints:\n  - method: BO|", "BOOK", "a.agis", "endpoints:\n  - method: BOOK"),
    ("[endpoint]\nmethod = |", "BOOK", "a.toml", '[endpoint]\nmethod = "BOOK"'),
    ('[endpoint]\nmethod = "BO|"', "BOOK", "a.toml", '[endpoint]\nmethod = "BOOK"'),
    ("[endpoint.semantic]\nis_idempotent = |", "true", "a.toml", "[endpoint.semantic]\nis_idempotent = true"),
    ("x: 1\nBO|\nFIND /room {\n}", "BOOK", "a.agis", "x: 1\nBOOK /\nFIND /room {\n}"),
)
def test_fields_and_values_are_written_as_their_notation_has_them(text: str, label: str, name: str, after: str) -> None:
    assert inserted(text, label, name) == after


def test_required_fields_come_first_and_present_ones_not_at_all() -> None:
    offered = labels("agis: '1.0'\nservice: A\n|", good="agis: '1.0'\nservice: A\n")
    assert "agis" not in offered
    assert set(offered[:3]) == {"agtp", "endpoints", "vocabulary"}


def test_rules_are_offered_inside_an_ignore() -> None:
    text = texts.yaml(path="/room/")
    typed = text.replace("path: /room/", "path: /room/  # bespeak: ignore[P32|")
    offered = complete(typed, good=text)
    assert offered[0].label == "P321"
    assert {item.label[:3] for item in offered} == {"P32"}
    assert labels("path: /room  # see P32|") == []


def test_rules_are_offered_as_keys_and_shared_schemas_in_quotation_marks() -> None:
    assert inserted('{"agis": "1.0", "x-bespeak-ignore": {|', "P302", "a.json").endswith('{"P302": ')
    good = GOOD + "schemas:\n  Room:\n    type: object\n"
    text = "endpoints:\n  - output:\n      $ref: |"
    assert inserted(text, "#/schemas/Room", good=good).endswith('$ref: "#/schemas/Room"')
    assert inserted(text.replace("|", '"#/|"'), "#/schemas/Room", good=good).endswith('$ref: "#/schemas/Room"')


def test_prose_is_left_alone() -> None:
    assert labels("endpoints:\n  - semantic:\n      intent: Books a |") == []
    assert labels("description: a|") == []
    assert labels("nonsense:\n  a|") == []
