"""A local reference resolves to one place in its document, in bounded time."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from bespeak.contract.schema.subschemas import inline, local_pointer, resolve, rewrite, target

ROOT: dict[str, Any] = {
    "$defs": {
        "A": {"$ref": "#/$defs/B", "title": "a"},
        "B": {"type": "string", "title": "b"},
        "loop": {"$ref": "#/$defs/loop"},
        "a/b": {"type": "string"},
        "a%b": {"type": "string"},
    },
    "prefixItems": [{"type": "string"}],
}


@pytest.mark.parametrize(
    ("reference", "at"),
    [("#", ""), ("#/a~1b", "/a~1b"), ("#/a%25b", "/a%b"), ("#name", None), ("", None), ("x.json#/a", None), (3, None)],
)
def test_pointer_is_that_of_a_reference_into_its_own_document(reference: object, at: str | None) -> None:
    assert local_pointer(reference) == at


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/B", "#/$defs/a~1b", "#/$defs/a%2Fb", "#/$defs/a%25b", "#/prefixItems/0", "#/$defs/C", "#/prefixItems/1"],
)
def test_target_exists_exactly_if_a_validator_finds_one(reference: str) -> None:
    try:
        found = not jsonschema_rs.Draft202012Validator({**ROOT, "$ref": reference}).is_valid(1)
    except (jsonschema_rs.ValidationError, ValueError):
        found = False
    assert (target(reference, ROOT) is not None) is found


def test_keywords_beside_a_reference_override_its_target() -> None:
    assert resolve({"$ref": "#/$defs/A", "description": "c"}, ROOT, most=5) == {
        "type": "string",
        "title": "a",
        "description": "c",
    }


def test_no_more_references_than_allowed_are_followed() -> None:
    assert resolve({"$ref": "#/$defs/A"}, ROOT, most=1)["$ref"] == "#/$defs/B"
    assert resolve({"$ref": "#/$defs/loop"}, ROOT, most=5) == {"$ref": "#/$defs/loop"}


@pytest.mark.parametrize("schema", [{"$ref": "#/nothing", "title": "x"}, {"$ref": "y.json", "title": "x"}])
def test_dangling_reference_adds_nothing(schema: dict[str, str]) -> None:
    assert resolve(schema, ROOT, most=5) == {"title": "x"}


def test_rewriting_changes_references_and_leaves_names_and_data() -> None:
    schema = {
        "$ref": "#/a",
        "properties": {"$ref": {"$dynamicRef": "#/b"}},
        "default": {"$ref": "#/c"},
        "anyOf": [{"$ref": "#/d", "title": "gone"}],
    }
    assert rewrite(schema, lambda reference: None if reference == "#/d" else reference.upper()) == {
        "$ref": "#/A",
        "properties": {"$ref": {"$dynamicRef": "#/B"}},
        "default": {"$ref": "#/c"},
        "anyOf": [{"title": "gone"}],
    }


def test_references_are_replaced_in_a_schema_and_its_alternatives() -> None:
    root = {
        "$defs": {"Size": {"enum": ["s", "l"]}, "Alias": {"$ref": "#/$defs/Size"}, "Loop": {"$ref": "#/$defs/Loop"}}
    }
    optional = {"anyOf": [{"$ref": "#/$defs/Alias"}, {"type": "null"}], "default": None}
    assert inline(optional, root) == {"anyOf": [{"enum": ["s", "l"]}, {"type": "null"}], "default": None}
    assert inline({"$ref": "#/$defs/Loop"}, root) == {"$ref": "#/$defs/Loop"}
    assert inline({"$ref": "#/$defs/Missing"}, root) == {"$ref": "#/$defs/Missing"}
