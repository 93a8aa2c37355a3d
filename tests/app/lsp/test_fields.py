"""The fields that are valid at a place of a document."""

from __future__ import annotations

import pytest

from bespeak.app.lsp.cursor import ITEM
from bespeak.app.lsp.fields import choices, field_at, is_rule, is_text, is_verb, properties
from bespeak.checks.lint.subject import Kind


def test_the_root_of_an_agis_document_has_its_fields() -> None:
    field = field_at("agis", ())
    assert field is not None
    assert {"agis", "service", "endpoints", "vocabulary"} <= set(properties(field))


@pytest.mark.parametrize(
    ("kind", "path", "values"),
    [
        ("agis", ("endpoints", ITEM, "semantic", "actor"), ["agent", "user", "system"]),
        ("agis", ("endpoints", ITEM, "semantic", "is_idempotent"), ["true", "false"]),
        ("agis", ("agis",), ["1.0"]),
        ("endpoint", ("endpoint", "semantic", "impact"), ["informational", "reversible", "irreversible"]),
        ("ai", ("capabilities", ITEM, "method"), ["GET", "POST", "PUT", "DELETE", "PATCH"]),
        ("ai", ("token_hints", "compact_mode"), ["true", "false"]),
        ("endpoint", ("endpoint", "deprecated", "successor", "method"), []),
        ("server", ("lint", "severity", "P302"), ["error", "warning", "info"]),
        ("server", ("lint", "conformance-level"), ["1", "2"]),
    ],
)
def test_a_field_has_its_choices(kind: Kind, path: tuple[str, ...], values: list[str]) -> None:
    field = field_at(kind, path)
    assert field is not None
    assert choices(field) == values


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("agis", ("endpoints", ITEM, "method")),
        ("agis", ("vocabulary", "declared_verbs", ITEM)),
        ("endpoint", ("endpoint", "method")),
        ("manifest", ("endpoints", ITEM, "method")),
        ("recipes", ("recipe", ITEM, "steps", ITEM, "method")),
        ("server", ("policies", "methods", "allow", ITEM)),
    ],
)
def test_verb_fields_are_known(kind: Kind, path: tuple[str, ...]) -> None:
    field = field_at(kind, path)
    assert field is not None
    assert is_verb(field)
    assert not is_rule(field)


def test_toml_leads_through_lists_without_saying_so() -> None:
    assert field_at("recipes", ("recipe", "pattern", "path_exact")) is not None


@pytest.mark.parametrize(
    "path",
    [
        ("endpoints", ITEM, "input"),
        ("endpoints", ITEM, "output", "properties", "room"),
        ("endpoints", ITEM, "input", "properties", "rooms", "items"),
        ("schemas", "Room"),
    ],
)
def test_schemas_have_the_words_of_json_schema(path: tuple[str, ...]) -> None:
    field = field_at("agis", path)
    assert field is not None
    assert {"type", "properties", "$ref"} <= set(properties(field))


@pytest.mark.parametrize("path", [("nonsense",), ("agis", "deeper"), ("endpoints", "method", "x"), (ITEM,)])
def test_other_places_have_no_field(path: tuple[str, ...]) -> None:
    assert field_at("agis", path) is None


def test_only_texts_go_into_quotation_marks() -> None:
    flag, text = (
        field_at("endpoint", ("endpoint", "semantic", "is_idempotent")),
        field_at("endpoint", ("endpoint", "path")),
    )
    assert flag is not None
    assert text is not None
    assert not is_text(flag)
    assert is_text(text)
