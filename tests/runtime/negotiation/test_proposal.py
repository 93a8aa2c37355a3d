"""Proposals in all their forms."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.negotiation.definitions import SEMANTIC, definition, fields

from bespeak.contract.catalog.document import open_catalog
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.negotiation.proposal import Proposal, read_proposal

CATALOG = open_catalog("1.1.0", None)[0]
WHOLE = definition()
SESSION = "3f1c9a52d8e04b7a9c1de6f0a7b85d21"


def read(body: Any) -> Proposal:
    assert CATALOG is not None
    proposal = read_proposal(body, CATALOG)
    assert isinstance(proposal, Proposal), proposal
    return proposal


def refuse(body: Any) -> Refused:
    assert CATALOG is not None
    refused = read_proposal(body, CATALOG)
    assert isinstance(refused, Refused)
    return refused


@pytest.mark.requirement("CORE-4.6-1", "CORE-4.6-2")
@pytest.mark.parametrize(
    "body",
    [
        WHOLE,
        {"endpoint": WHOLE},
        {"proposal": WHOLE, "session_id": SESSION},
        {"parameters": WHOLE},
        {"parameters": {"endpoint": WHOLE}},
        {"method": "PROPOSE", "task_id": "t", "parameters": {"proposal": WHOLE, "session_id": SESSION}},
        {"method": "PROPOSE", "endpoint": WHOLE},
        {**WHOLE, "name": "FIND", "proposed_method": "FIND", "intent": "x", "signature": {}},
        {**definition(method=None), "name": "FIND"},
        {"parameters": {**WHOLE, "name": "FIND"}},
    ],
)
def test_every_form_of_a_definition_is_the_same_contract(body: Any) -> None:
    proposal = read(body)
    assert proposal.digest == read(WHOLE).digest
    assert (proposal.endpoint.method, proposal.endpoint.path) == ("FIND", "/rooms/cheap")
    assert (proposal.findings, proposal.is_brief, proposal.persistent) == ((), False, False)
    assert proposal.endpoint.error_names == ("composition_failed",)


@pytest.mark.parametrize(
    "body",
    [
        {"endpoint": WHOLE, "proposal": WHOLE},
        {"endpoint": WHOLE, "name": "FIND"},
        {"parameters": {"endpoint": WHOLE, "name": "FIND", "path": "/rooms"}},
        {"name": "FIND", "method": "LIST", "path": "/rooms"},
    ],
)
def test_body_with_two_proposals_is_ambiguous(body: Any) -> None:
    assert (refuse(body).status, refuse(body).code) == (400, "ambiguous-body")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"parameters": {}},
        {"endpoint": {}},
        {"endpoint": "FIND /rooms"},
        {"proposal": [WHOLE]},
        {"method": 5, "path": "/rooms"},
        {"path": "/rooms"},
        {**WHOLE, "persistent": "yes"},
        {**WHOLE, "requested_duration": "forever"},
        {**WHOLE, "requested_duration": 7},
        {**WHOLE, "session_id": 7},
        {**WHOLE, "session_id": "a b"},
        {**WHOLE, "scope_requested": [7]},
        {**WHOLE, "scope_requested": ["everything, please"]},
    ],
)
def test_body_without_a_usable_proposal_is_refused(body: Any) -> None:
    refused = refuse(body)
    assert (refused.status, refused.code) == (400, "invalid-proposal")


def test_reference_form_is_completed_and_claims_nothing() -> None:
    proposal = read({"name": "AUDIT", "parameters": {"subject": "string", "depth": {"type": "integer"}}})
    endpoint = proposal.endpoint
    assert proposal.is_brief
    assert not proposal.findings
    assert (endpoint.method, endpoint.path, endpoint.semantic.actor) == ("AUDIT", "/", "agent")
    assert endpoint.input_schema["properties"] == {"subject": {"type": "string"}, "depth": {"type": "integer"}}
    assert endpoint.input_schema["required"] == ["subject", "depth"]
    assert endpoint.input_schema["additionalProperties"] is False
    assert endpoint.semantic.capability


def test_parameters_of_a_template_are_added_to_a_short_form() -> None:
    endpoint = read({"name": "RETRIEVE", "path": "/accounts/{id}", "semantic": None}).endpoint
    assert endpoint.input_schema["properties"] == {"id": {"type": "string"}}


@pytest.mark.parametrize(
    "signature",
    [
        {"parameters": fields("stay"), "response": fields("total"), "outcome": "The total is known."},
        {"input_schema": fields("stay"), "output_schema": fields("total"), "outcome": "The total is known."},
        {
            "parameters": [{"name": "stay", "type": "string"}],
            "returns": {"total": "string"},
            "outcome": "The total is known.",
        },
    ],
)
def test_table_of_the_core_draft_is_completed_from_its_signature(signature: Any) -> None:
    body = {"proposed_method": "AUDIT", "signature": signature, "intent": "Audit a stay.", "path": "/stays"}
    endpoint = read(body).endpoint
    assert list(endpoint.input_schema["properties"]) == endpoint.input_schema["required"] == ["stay"]
    assert list(endpoint.output_schema["properties"]) == ["total"]
    assert (endpoint.semantic.intent, endpoint.semantic.outcome) == ("Audit a stay.", "The total is known.")
    assert endpoint.description == "Audit a stay."


def test_parameter_that_is_not_required_stays_optional() -> None:
    body = {"name": "AUDIT", "parameters": {"subject": {"type": "string", "required": False}, "x": "any text"}}
    schema = read(body).endpoint.input_schema
    assert schema["required"] == ["x"]
    assert schema["properties"] == {"subject": {"type": "string"}, "x": {"description": "any text"}}


def test_settings_of_a_proposal_are_read_beside_it() -> None:
    outer = {"session_id": SESSION, "persistent": True, "requested_duration": "7d"}
    proposal = read({**outer, "proposal": definition(required_scopes=["a:b"]), "scope_requested": "c:d, a:b"})
    assert (proposal.persistent, proposal.duration, proposal.session_id) == (True, 604800, SESSION)
    assert proposal.scopes == ("a:b", "c:d")
    assert proposal.endpoint.required_scopes == ("a:b",)
    assert proposal.digest != read(WHOLE).digest, "a persistent endpoint is another synthesis"


def test_input_that_says_nothing_about_other_fields_is_closed() -> None:
    opened = {"type": "object", "properties": {}}
    assert read(definition(input_schema=opened)).endpoint.input_schema["additionalProperties"] is False
    assert read(definition(input_schema={**opened, "additionalProperties": True})).endpoint.input_schema[
        "additionalProperties"
    ]


def test_definition_that_the_server_publishes_is_read_back_as_the_same_contract() -> None:
    proposal = read(definition(semantic={**SEMANTIC, "confidence": 1}, errors=["none_free"]))
    published = project_endpoint(proposal.endpoint)
    assert read(published).digest == proposal.digest
    assert read({**published, "semantic": {**published["semantic"], "confidence": 1.0}}).digest == proposal.digest


def test_what_only_the_server_says_is_not_read() -> None:
    given = definition(internal=True, deprecated={"deprecated_in": "1"}, cost={"USD": "0"}, namespace="admin", zork=1)
    assert read(given).endpoint == read(WHOLE).endpoint


def test_wrong_parts_are_findings_with_their_place() -> None:
    proposal = read(definition(semantic="text", input_schema=[], path=7))
    assert {finding.pointer for finding in proposal.findings if finding.severity == "error"} >= {
        "/endpoint/semantic",
        "/endpoint/path",
        "/endpoint/input_schema",
    }


def test_members_of_agis_documents_are_for_the_operator_to_say() -> None:
    said = {"mcp_tool_name": "cancel", "parameter_hints": {"a": ["b"]}, "confidence_guidance": 0.1}
    assert read(definition(semantic={**SEMANTIC, **said})) == read(definition())


@pytest.mark.parametrize("name", [{"required": ["zz"]}, [1], None, 7])
def test_parameter_without_a_name_is_left_out(name: Any) -> None:
    proposal = read({"name": "FIND", "parameters": [{"name": name}, {"name": "city"}, "text"]})
    assert list(proposal.endpoint.input_schema["properties"]) == ["city"]
