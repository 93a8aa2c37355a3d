"""The fields that are valid at a place of a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.cases import rows

from bespeak.app.lsp.completion import OUTLINES, catalog_of, choices, field_at, is_verb
from bespeak.app.lsp.cursor import ITEM
from bespeak.checks.lint.config import read_config
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import Kind, LintContext
from bespeak.documents.ai.document import MEMBERS
from bespeak.documents.deployment.server_toml import read_server
from bespeak.documents.schemas import SCHEMAS, load_schema
from bespeak.text.reading.settings import Outline


def test_root_of_an_agis_document_has_its_fields_and_toml_leads_through_lists() -> None:
    field = field_at("agis", ())
    assert {"agis", "service", "endpoints", "vocabulary"} <= set(field["properties"])
    assert field_at("recipes", ("recipe", "pattern", "path_exact")) is not None


@rows(
    "kind, path, values",
    ("agis", ("endpoints", ITEM, "semantic", "actor"), ["agent", "user", "system"]),
    ("agis", ("endpoints", ITEM, "semantic", "is_idempotent"), ["true", "false"]),
    ("agis", ("agis",), ["1.0"]),
    ("endpoint", ("endpoint", "semantic", "impact"), ["informational", "reversible", "irreversible"]),
    ("ai", ("capabilities", ITEM, "method"), ["GET", "POST", "PUT", "DELETE", "PATCH"]),
    ("ai", ("token_hints", "compact_mode"), ["true", "false"]),
    ("endpoint", ("endpoint", "deprecated", "successor", "method"), []),
    ("server", ("lint", "severity", "P302"), ["error", "warning", "info"]),
    ("server", ("lint", "conformance-level"), ["1", "2"]),
)
def test_a_field_has_its_choices(kind: Kind, path: tuple[str, ...], values: list[str]) -> None:
    field = field_at(kind, path)
    assert field is not None
    assert choices(field) == values


@rows(
    "kind, path",
    ("agis", ("endpoints", ITEM, "method")),
    ("agis", ("vocabulary", "declared_verbs", ITEM)),
    ("endpoint", ("endpoint", "method")),
    ("manifest", ("endpoints", ITEM, "method")),
    ("recipes", ("recipe", ITEM, "steps", ITEM, "method")),
    ("server", ("policies", "methods", "allow", ITEM)),
)
def test_verb_fields_are_known(kind: Kind, path: tuple[str, ...]) -> None:
    field = field_at(kind, path)
    assert field is not None
    assert is_verb(field)


@rows(
    "path",
    ("endpoints", ITEM, "input"),
    ("endpoints", ITEM, "output", "properties", "room"),
    ("endpoints", ITEM, "input", "properties", "rooms", "items"),
    ("schemas", "Room"),
)
def test_schemas_have_the_words_of_json_schema(path: tuple[str, ...]) -> None:
    field = field_at("agis", path)
    assert {"type", "properties", "$ref"} <= set(field["properties"])


@pytest.mark.parametrize("path", [("nonsense",), ("agis", "deeper"), ("endpoints", "method", "x"), (ITEM,)])
def test_other_places_have_no_field(path: tuple[str, ...]) -> None:
    assert field_at("agis", path) is None


CONTEXT = LintContext(catalog=catalog_of(None))


def walk(outline: Outline, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Outline]]:
    for name, inner in outline.get("properties", {}).items():
        yield (*path, name), inner
        yield from walk(inner.get("items", inner), (*path, name))


def test_every_kind_of_document_has_an_outline_or_a_schema() -> None:
    assert {*OUTLINES, *SCHEMAS} == set(get_args(Kind))
    assert not OUTLINES.keys() & SCHEMAS.keys()


@pytest.mark.parametrize("kind", OUTLINES)
def test_every_field_has_a_description(kind: Kind) -> None:
    assert [path for path, field in walk(OUTLINES[kind]) if not field.get("description")] == []


def example(field: Outline) -> Any:
    if "enum" in field:
        return field["enum"][0]
    examples: dict[str, Any] = {"boolean": True, "number": 1, "integer": 1, "array": [], "object": {}}
    return examples.get(field.get("type", ""), "x")


def table(outline: Outline) -> dict[str, Any]:
    """Build a document with every field of an outline."""
    made: dict[str, Any] = {}
    for name, field in outline.get("properties", {}).items():
        if "properties" in field:
            made[name] = table(field)
        elif "properties" in field.get("items", {}):
            made[name] = [table(field["items"])]
        else:
            made[name] = example(field)
    return made


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool | int) else f'"{value}"'


def unknown(whole: dict[str, Any], kind: Kind) -> set[str]:
    """Return the pointers of the fields that a reader does not know."""
    text = "".join(f"{name} = {toml(value)}\n" for name, value in whole.items())
    checked = check_text(text, "bespeak.toml", CONTEXT, kind)
    assert checked.subject is not None, text
    return {finding.pointer for finding in checked.findings if finding.rule == "D105"}


@pytest.mark.parametrize("kind", ["server", "recipes"])
def test_no_field_is_unknown_to_the_reader(kind: Kind) -> None:
    assert unknown(table(OUTLINES[kind]), kind) == set()


def test_no_field_of_an_endpoint_is_unknown_to_the_reader() -> None:
    whole = table(OUTLINES["endpoint"])
    lists = {name: whole["endpoint"].pop(name) for name in ("input", "output")}
    types = OUTLINES["endpoint"]["properties"]["endpoint"]["properties"]["handler"]["properties"]["type"]["enum"]
    wrong = []
    for type_ in types:
        whole["endpoint"]["handler"]["type"] = type_
        wrong.append(unknown(whole, "endpoint"))
    whole["endpoint"]["handler"] |= {"type": "external_service"}
    del whole["endpoint"]["handler"]["mcp"]
    wrong.append(unknown(whole, "endpoint"))
    # Every kind of handler has keys of its own; each key belongs to one of them.
    assert set.intersection(*wrong) == set()
    for name in ("input_schema", "output_schema"):
        whole["endpoint"].pop(name)
    assert not {at for at in unknown({"endpoint": whole["endpoint"] | lists}, "endpoint") if "put" in at.split("/")[2]}


def test_no_field_of_a_discovery_document_is_unknown_to_the_reader() -> None:
    schema = load_schema("ai")
    listed = {"capabilities": {"items": schema["$defs"]["capability"]}}
    outline = {**schema, "properties": {**schema["properties"], **listed}}
    checked = check_text(json.dumps(table(outline)), "ai.json", CONTEXT, "ai")
    assert checked.subject is not None
    assert {finding.pointer for finding in checked.findings if finding.rule in ("D105", "D187")} == set()
    assert tuple(schema["properties"]) == MEMBERS


def test_the_reader_would_tell_an_unknown_field() -> None:
    checked = check_text("[server]\nnonsense = 1\n", "bespeak.toml", CONTEXT, "server")
    assert "D105" in {finding.rule for finding in checked.findings}


def test_the_settings_of_lint_are_those_it_reads(tmp_path: Path) -> None:
    lint = OUTLINES["server"]["properties"]["lint"]["properties"]
    values = {name: toml(example(field)) for name, field in lint.items()}
    values |= {"severity": '{ P302 = "info" }', "conformance": "false"}
    file = tmp_path / "bespeak.toml"
    file.write_text("[lint]\n" + "".join(f"{name} = {value}\n" for name, value in values.items()))
    config = read_config(file)
    assert config.severity == {"P302": "info"}
    assert read_server(file)[1] == []
