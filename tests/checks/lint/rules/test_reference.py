from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows
from tests.checks.lint.agis_text import advice, document, endpoint, findings, rules

ROOM = {"type": "object", "properties": {"number": {"type": "integer"}}}


def shared(reference: Any, **schemas: Any) -> dict[str, Any]:
    return document(endpoint(output={"$ref": reference}), schemas={"Room": ROOM, **schemas})


NAMED_REF = {"type": "object", "properties": {"$ref": {"type": "string"}}, "examples": [{"$ref": "room.json"}]}


@rows(
    "whole",
    shared("#/schemas/Room"),
    shared("#/schemas/Room/properties/number"),
    document(endpoint(output={"$ref": "#/$defs/room", "$defs": {"room": ROOM}})),
    document(endpoint(output=NAMED_REF)),  # a property and an example are not references
)
def test_reference_to_a_shared_schema_or_a_part_is_right(whole: dict[str, Any]) -> None:
    assert rules(whole) == []


@pytest.mark.parametrize(
    "reference", ["https://schemas.example/room.json", "file:///etc/passwd", "room.json", "//evil.example", "", 5]
)
def test_a_reference_stays_in_the_document(reference: Any) -> None:
    whole = document(endpoint(output={"type": "object", "properties": {"room": {"$ref": reference}}}))
    found = advice("J630", whole)
    assert (found.severity, found.pointer) == ("error", "/endpoints/0/output/properties/room/$ref")
    assert rules(whole) == ["J630"]


@pytest.mark.parametrize("reference", ["#/schemas/Chamber", "#/schemas/Room/properties/size", "#/$defs/room"])
def test_reference_must_have_a_target(reference: str) -> None:
    assert "J631" in rules(shared(reference))
    assert "J625" not in rules(shared(reference))


def test_wrong_case_of_a_reference_has_an_unsafe_fix_and_an_unused_schema_is_found() -> None:
    found = advice("J631", shared("#/schemas/room"))
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].value) == (False, "#/schemas/Room")
    found = advice("J632", document(schemas={"Room": ROOM}))
    assert (found.severity, found.pointer, found.on_key) == ("info", "/schemas/Room", True)


@pytest.mark.requirement("AGIS-7-8", "AGIS-9.1-6")
@rows(
    "schema, pointer",
    ({"type": "objekt"}, "/type"),
    ({"properties": {"a": {"minimum": "1"}}}, "/properties/a/minimum"),
    ({"properties": {"a": {"pattern": "("}}}, "/properties/a/pattern"),
    ({"required": True}, "/required"),
    ({"patternProperties": {"(": {}}}, "/patternProperties/("),
)
def test_a_schema_is_valid(schema: dict[str, Any], pointer: str) -> None:
    found = advice("J625", document(endpoint(output=schema)))
    assert (found.severity, found.pointer) == ("error", f"/endpoints/0/output{pointer}")


@rows(
    "kind, help_, fix",
    ("int", "Write integer.", "integer"),
    ("strng", "Did you mean string?", None),
    ("money", "Write integer, number, string, boolean, object, array or null.", None),
)
def test_type_of_another_language_is_fixed_and_an_unknown_one_lists_the_known(
    kind: str, help_: str, fix: str | None
) -> None:
    found = advice("J625", document(endpoint(output={"properties": {"a": {"type": kind}}})))
    assert (found.message, found.help) == (f"'{kind}' is not a JSON Schema type", help_)
    assert (found.fix and (found.fix.safe, found.fix.changes[0].value)) == (fix and (True, fix))


@pytest.mark.requirement("AGIS-9.1-6")
def test_a_mistake_in_a_shared_schema_is_found_once_and_there() -> None:
    whole = shared("#/schemas/Bad", Bad={"type": "objekt"}, Room=ROOM)
    found = [finding for finding in findings(whole) if finding.rule == "J625"]
    assert [finding.pointer for finding in found] == ["/schemas/Bad/type"]


@pytest.mark.parametrize("pattern", ["^(?!x)[a-z]+$", r"^(a)\1$"])
def test_a_pattern_of_json_schema_is_valid_though_not_for_every_engine(pattern: str) -> None:
    assert rules(document(endpoint(output={"type": "string", "pattern": pattern}))) == ["X921"]
    assert rules(document(endpoint(output={"patternProperties": {pattern: {}}}))) == ["X921"]


def test_shared_schema_is_judged_once_and_without_those_it_refers_to() -> None:
    broken = {"type": "object", "properties": {"default": {"$ref": "#/schemas/Room"}, "size": {"type": "intager"}}}
    found = advice("J625", shared("#/schemas/Suite", Suite=broken))
    assert found.pointer.startswith("/schemas/Suite/properties/size")
    ring = {f"s{number}": {"$ref": f"#/schemas/s{(number + 1) % 3_000}"} for number in range(3_000)}
    assert set(rules(document(endpoint(output={"$ref": "#/schemas/s0"}), schemas=ring))) >= {"J625"}
