"""Shared schemas are copied into the schemas that use them, and back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.agis.shape import SharedSchemas, target, unbundle

SHARED: dict[str, Any] = {
    "Room": {"type": "object", "properties": {"beds": {"type": "array", "items": {"$ref": "#/schemas/Bed"}}}},
    "Bed": {
        "type": "object",
        "properties": {"room": {"$ref": "#/schemas/Room"}, "size": {"$ref": "#/$defs/size"}},
        "$defs": {"size": {"type": "integer"}},
    },
    "Guest": {"type": "string"},
    "a/b~c d": {"type": "boolean"},
}


def refers(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"it": {"$ref": f"#/schemas/{name}"}}}


def test_only_used_schemas_are_copied_including_indirect_and_circular_ones() -> None:
    bundled = SharedSchemas(SHARED).bundle(refers("Room"))
    assert set(bundled["$defs"]) == {"Room", "Bed"}
    validator = compile_schema(bundled)
    assert isinstance(validator, Validator)
    assert validator.is_valid({"it": {"beds": [{"room": {"beds": []}, "size": 2}]}})
    assert not validator.is_valid({"it": {"beds": [{"size": "large"}]}})
    assert not validator.is_valid({"it": {"beds": [{"room": {"beds": 5}}]}})


@rows(
    "schema",
    refers("Room"),
    refers("Guest"),
    refers("Bed/properties/size"),
    refers("a~1b~0c%20d"),
    {"$ref": "#/schemas/Room"},
    {**refers("Room"), "$defs": {"Room": {"type": "null"}, "mine": {"$ref": "#/$defs/Room"}}},
    {**refers("Guest"), "$defs": {"Guest": {"const": 1}, "schemas.Guest": {"const": 2}}},
    {"type": "object"},
    {"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "#/schemas/Room"}},
    {"$defs": {"mine": {"type": "string"}}, "items": {"$ref": "#/$defs/mine"}},
)
def test_unbundle_reverts_bundle(schema: dict[str, Any]) -> None:
    bundled = SharedSchemas(SHARED).bundle(schema)
    assert isinstance(compile_schema(bundled), Validator)
    assert unbundle(bundled, SHARED) == schema


def test_a_definition_of_the_same_name_is_not_mistaken_for_the_shared_one() -> None:
    schema = {**refers("Guest"), "$defs": {"Guest": {"const": 1}}}
    bundled = SharedSchemas(SHARED).bundle(schema)
    assert bundled["$defs"] == {"Guest": {"const": 1}, "schemas.Guest": {"type": "string"}}
    assert bundled["properties"]["it"] == {"$ref": "#/$defs/schemas.Guest"}
    own = {"$defs": {"Guest": {"const": 1}}, "items": {"$ref": "#/$defs/Guest"}}
    assert unbundle(own, SHARED) == own


def test_schemas_that_use_the_same_definitions_share_them() -> None:
    shared = SharedSchemas(SHARED)
    one, other = shared.bundle(refers("Room")), shared.bundle({"items": {"$ref": "#/schemas/Room"}})
    assert one["$defs"] is other["$defs"]
    own = [{**refers("Bed"), "$defs": {"Room": {"const": number}}} for number in (1, 2)]
    first, second = (shared.bundle(schema)["$defs"] for schema in own)
    assert first["Bed"] is second["Bed"] is not one["$defs"]["Bed"]
    assert first["Bed"]["properties"]["room"] == {"$ref": "#/$defs/schemas.Room"}
    assert (first["Room"], second["Room"]) == ({"const": 1}, {"const": 2})
    assert shared.alone("Room") is shared.alone("Room")


def test_dangling_reference_is_kept_and_arguments_are_not_modified() -> None:
    assert SharedSchemas(SHARED).bundle(refers("Nobody")) == refers("Nobody")
    assert not isinstance(compile_schema(SharedSchemas(SHARED).bundle(refers("Nobody"))), Validator)
    schema = refers("Room")
    SharedSchemas(SHARED).bundle(schema)
    assert schema == refers("Room")
    assert SHARED["Bed"]["properties"]["size"] == {"$ref": "#/$defs/size"}


@pytest.mark.parametrize(
    ("reference", "name"),
    [("#/schemas/Room", "Room"), ("#/schemas/Room/type", None), ("#/schemas/No", None), ("#/x", None), (5, None)],
)
def test_a_reference_may_lead_to_a_shared_schema_as_a_whole(reference: object, name: str | None) -> None:
    assert target(reference, SHARED) == name
