"""Pass 1: every structural error of a document is reported once, with its location."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.documents.agis_documents import booking, documents, values

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents import rules
from bespeak.documents.agis.document import check_structure
from bespeak.documents.schemas import load_schema
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, declared_in
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import Change, SyntaxFault, Tree
from bespeak.text.source.yaml_tree import parse_yaml


def tree_of(data: Any) -> Tree:
    tree = parse_json(json.dumps(data), "menu.agis")
    assert not isinstance(tree, SyntaxFault)
    return tree


def check(data: Any) -> list[tuple[str, str]]:
    return [(finding.rule, finding.pointer) for finding in check_structure(tree_of(data))]


def only(data: Any) -> Diagnostic:
    (finding,) = check_structure(tree_of(data))
    return finding


def test_a_conforming_document_has_no_findings() -> None:
    assert check(booking()) == []


@pytest.mark.requirement("AGIS-10-3")
@given(documents())
@settings(max_examples=60)
def test_every_canonical_document_conforms(data: dict[str, Any]) -> None:
    assert {rule for rule, _ in check(data)} <= {"D127"}
    validator = compile_schema(load_schema("agis"))
    assert isinstance(validator, Validator)
    assert validator.violations(data) == []


@given(st.recursive(values, lambda inner: st.fixed_dictionaries({}, optional=dict.fromkeys(booking(), inner))))
@settings(max_examples=200)
def test_any_document_is_checked_without_an_exception(data: Any) -> None:
    for finding in check_structure(tree_of(data)):
        assert finding.rule in {"Y880", *(name for name in declared_in(rules) if name.startswith("D12"))}
        assert finding.location is not None


@rows(
    "cost, found",
    ({"tokens": 500, "USD": "0.02", "compute-seconds": 1.5}, []),
    ({}, []),
    ({"USD": "2 cents", "tokens": 1}, [("Y880", "/endpoints/0/cost/USD")]),
    ({"gold": 1}, [("Y880", "/endpoints/0/cost/gold")]),
    ({"tokens": None}, [("Y880", "/endpoints/0/cost/tokens")]),
    ("much", [("D121", "/endpoints/0/cost")]),
)
def test_a_cost_is_an_amount_in_a_registered_unit(cost: Any, found: list[tuple[str, str]]) -> None:
    data = booking()
    data["endpoints"][0]["cost"] = cost
    assert check(data) == found


@pytest.mark.requirement("AGIS-8.1-1", "AGIS-8.1-6")
@pytest.mark.parametrize("key", ["agis", "service", "agtp", "endpoints", "vocabulary"])
def test_a_required_field_that_is_missing_or_empty_is_an_error(key: str) -> None:
    data = booking()
    del data[key]
    assert check(data) == [("D120", "")]
    assert f"`{key}` is missing" in only(data).message
    for empty in (None, "", "  ", {}, *([[]] if key == "endpoints" else [])):
        data[key] = empty
        rule = "D125" if key == "endpoints" and empty in ({}, []) else "D120"
        assert check(data) == [(rule, f"/{key}")], empty


@pytest.mark.requirement("AGIS-8.1-2", "AGIS-8.1-3")
@pytest.mark.parametrize("key", ["description", "version"])
def test_a_recommended_field_that_is_missing_is_a_warning(key: str) -> None:
    data = booking()
    data[key] = None
    finding = only(data)
    assert (finding.rule, finding.severity, finding.pointer) == ("D127", "warning", f"/{key}")
    del data[key]
    assert check(data) == [("D127", "")]


@pytest.mark.parametrize("document", [[], "text", 5, None, [booking()]])
def test_a_document_is_a_mapping(document: Any) -> None:
    assert check(document) == [("D128", "")]


@pytest.mark.requirement("AGIS-10-3")
@rows(
    "pointer, value",
    ("/service", 5),
    ("/description", ["a"]),
    ("/version", 1.2),
    ("/operator", True),
    ("/contact", None),
    ("/vocabulary", "BOOK"),
    ("/vocabulary/declared_verbs", "BOOK"),
    ("/vocabulary/negotiable", "yes"),
    ("/schemas", ["a"]),
    ("/data_manifest", "none"),
    ("/endpoints/0", 7),
    ("/endpoints/0/method", 5),
    ("/endpoints/0/semantic", "Books."),
    ("/endpoints/0/semantic/intent", 5),
    ("/endpoints/0/semantic/is_idempotent", "no"),
    ("/endpoints/0/semantic/confidence_guidance", "high"),
    ("/endpoints/0/semantic/parameter_hints", {"room_id": "the room"}),
    ("/endpoints/0/semantic/state_transition", ["a -> b"]),
    ("/endpoints/0/input", []),
    ("/endpoints/0/errors", "room_unavailable"),
    ("/endpoints/0/errors/0", 5),
    ("/endpoints/0/namespace", None),
    ("/endpoints/0/semantic/capability", None),
    ("/endpoints/0/required_scopes", "a:b"),
    ("/endpoints/0/proposed", 1),
)
def test_wrong_type_is_an_error_with_its_location(pointer: str, value: Any) -> None:
    data = booking()
    *parents, last = pointer.split("/")[1:]
    block: Any = data
    for part in parents:
        block = block[int(part)] if isinstance(block, list) else block[part]
    if isinstance(block, list):
        block[int(last)] = value
    else:
        block[last] = value
    ((rule, place),) = check(data)
    assert rule == "D121"
    assert place.startswith(pointer)


def test_what_later_passes_report_is_not_reported_here() -> None:
    data = booking()
    data["vocabulary"] = {"declared_verbs": [], "negotiable": True}
    data["data_manifest"] = {"available_data": [{"sensitivity": "odd"}]}
    data["endpoints"] = [
        {"method": "book_room", "path": "room"},
        {"method": "BOOK", "path": "/a", "semantic": {"actor": "dog", "capability": "x", "impact_tier": "bad"}},
        {
            "method": "BOOK",
            "path": "/b",
            "semantic": {"confidence_guidance": 7, "mcp_tool_name": "A B"},
            "errors": [{}],
        },
    ]
    assert check(data) == []


@pytest.mark.requirement("AGIS-8.1-4")
@pytest.mark.parametrize(("version", "fixable"), [(1.0, True), (1, True), ("2.0", False), ("1", False), (True, False)])
def test_the_version_is_the_text_one_dot_zero(version: Any, fixable: bool) -> None:
    data = booking() | {"agis": version}
    finding = only(data)
    assert (finding.rule, finding.pointer) == ("D122", "/agis")
    assert (finding.fix is not None and finding.fix.changes == (Change("replace", "/agis", "1.0"),)) is fixable


@pytest.mark.requirement("AGIS-8.1-5")
@pytest.mark.parametrize("address", ["rooms.acme.example", "https://rooms.acme.example", "agtp://", "agtp:///x"])
def test_an_address_of_another_scheme_or_without_a_host_is_an_error(address: str) -> None:
    assert check(booking() | {"agtp": address}) == [("D123", "/agtp")]


@pytest.mark.requirement("AGIS-8.1-6")
def test_endpoints_under_keys_are_an_error_and_still_checked() -> None:
    data = booking()
    (entry,) = data["endpoints"]
    del entry["method"], entry["path"]
    entry["semantic"]["intent"] = 5
    data["endpoints"] = {"BOOK /room": entry}
    found = check_structure(tree_of(data))
    assert [(finding.rule, finding.pointer) for finding in found] == [
        ("D124", "/endpoints"),
        ("D121", "/endpoints/BOOK ~1room/semantic/intent"),
    ]
    assert "bespeak format" in found[0].help


BIND = "A document cannot bind a handler: do that in bespeak.toml, or with @app.handler in Python."


def test_unknown_key_is_a_warning_with_a_suggestion() -> None:
    data = booking() | {"descripton": "a", "x-own": 1}
    data["endpoints"][0] |= {"input_schema": {}, "x-more": 1, "colour": "red", "handler": "a.b"}
    del data["endpoints"][0]["input"]
    found = check_structure(tree_of(data))
    assert {finding.severity for finding in found} == {"warning"}
    assert {finding.pointer: finding.help for finding in found} == {
        "/descripton": "A key of your own starts with x-.",  # `description` is there already
        "/endpoints/0/input_schema": "Did you mean `input`?",
        "/endpoints/0/colour": "A key of your own starts with x-.",
        "/endpoints/0/handler": BIND,
    }
    assert all(finding.on_key for finding in found)


@rows(
    "at, key, meant",
    ("", "required_scope", "required_scopes"),
    ("", "scopes", "required_scopes"),
    ("", "confrim", "confirm"),
    ("", "Internal", "internal"),
    ("semantic", "impact", "impact_tier"),
    ("semantic", "idempotent", "is_idempotent"),
)
def test_a_misspelt_key_that_guards_something_is_an_error(at: str, key: str, meant: str) -> None:
    data = booking()
    endpoint = data["endpoints"][0]
    part = endpoint[at] if at else endpoint
    part.pop(meant, None)
    part[key] = True
    (finding,) = [each for each in check_structure(tree_of(data)) if each.rule == "D126"]
    assert (finding.severity, finding.help) == ("error", f"Did you mean `{meant}`?")


def test_a_finding_has_the_line_and_column_of_its_value() -> None:
    tree = parse_yaml('agis: "1.0"\nservice: x\nagtp:  nowhere\n', "menu.agis")
    assert not isinstance(tree, SyntaxFault)
    places = {finding.rule: str(finding.location) for finding in check_structure(tree)}
    assert places["D123"] == "menu.agis:3:8"


def test_number_that_should_be_a_text_can_be_fixed_and_keeps_its_last_zero() -> None:
    assert only(booking() | {"version": 12}).fix == Fix('Write "12"', (Change("replace", "/version", "12"),), safe=True)
    tree = parse_json(json.dumps(booking() | {"version": 7.5}).replace("7.5", "1.20"), "menu.agis")
    assert not isinstance(tree, SyntaxFault)
    (finding,) = check_structure(tree)
    assert finding.fix.changes == (Change("replace", "/version", "1.20"),)


def test_a_broken_document_has_a_bounded_number_of_findings() -> None:
    data = booking()
    data["endpoints"] *= 3000
    data["endpoints"] = [{**entry, "method": 5, "odd": 1} for entry in data["endpoints"]]
    assert len(check_structure(tree_of(data))) == 100
