"""What is sent as a proposal: complete, and honest about what the agent does not know."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.agent.client.proposal import define, read_proposal
from bespeak.checks.lint.registration import check_contract
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.policy import Policies
from bespeak.errors import ConfigError


def test_definition_is_complete_and_valid() -> None:
    proposal = define("find", "/rooms/cheap", given=["max_price:number"], needs=["rooms[].room_id"])
    assert proposal.definition["method"] == "FIND"
    assert set(proposal.definition) >= {
        "path",
        "description",
        "semantic",
        "input_schema",
        "output_schema",
        "errors",
        "handler",
    }
    assert proposal.definition["input_schema"] == {
        "type": "object",
        "properties": {"max_price": {"type": "number"}},
        "required": ["max_price"],
        "additionalProperties": False,
    }
    assert proposal.endpoint.key == ("FIND", "/rooms/cheap")
    found = check_contract(proposal.endpoint, load_bundled(), Policies())
    assert [finding for finding in found if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("method", "impact", "said", "idempotent"),
    [
        ("FIND", None, "informational", True),
        ("SUMMARIZE", None, "informational", True),
        ("BOOK", None, "irreversible", False),
        ("BOOK", "reversible", "reversible", False),
        ("FIND", "irreversible", "irreversible", False),
        ("FROBNICATE", None, "irreversible", False),
    ],
)
def test_impact_is_the_worst_that_is_allowed(method: str, impact: str | None, said: str, idempotent: bool) -> None:
    semantic = define(method, "/rooms", impact=impact).endpoint.semantic
    assert (semantic.impact, semantic.is_idempotent, semantic.confidence) == (said, idempotent, 1.0)


def test_parameters_of_the_path_are_required_inputs() -> None:
    schema = define("FETCH", "/rooms/{room_id}/guests/{id}", given=["id:integer"]).definition["input_schema"]
    assert schema["properties"] == {"id": {"type": "integer"}, "room_id": {"type": "string"}}
    assert sorted(schema["required"]) == ["id", "room_id"]


def test_inputs_without_a_type_take_the_one_that_the_service_uses() -> None:
    known = [
        make_endpoint(
            "QUERY", "/a", echo, properties={"beds": {"type": "integer", "minimum": 1}, "id": {"type": "string"}}
        ),
        make_endpoint("QUERY", "/b", echo, properties={"beds": {"type": "integer"}, "id": {"type": "integer"}}),
        make_endpoint("QUERY", "/c", echo, properties={"kind": {"$ref": "#/$defs/kind"}}),
    ]
    schema = define("FIND", "/x", given=["beds", "id", "kind", "other"], known=known).definition["input_schema"]
    assert schema["properties"] == {
        "beds": {"type": "integer"},
        "id": {"type": "string"},
        "kind": {"type": "string"},
        "other": {"type": "string"},
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"impact": "none"}, "impact must be one of informational, reversible, irreversible; got 'none'"),
        ({"given": {"a": {"enum": [object()]}}}, "is not JSON"),
    ],
)
def test_what_cannot_be_proposed_is_refused_before_it_is_sent(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        define("FIND", "/x", **options)


def test_definitions_need_a_method_and_a_path() -> None:
    with pytest.raises(ConfigError, match="without a method and a path"):
        read_proposal({"method": "FIND"})
