"""Refusals of tool calls: what a model can do about them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.mcp_tool import Granting, check_arguments, error_members
from bespeak.contract.schema.subschemas import closed
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.protocol.exchange.refusal import Outcome

BEDS = endpoint("FIND", "/rooms", input_schema={"type": "object", "properties": {"beds": {}}})
GRANTING = Granting(lambda scopes: f"grant {' and '.join(scopes)}", "pass an agent_id")


def checked(arguments: dict[str, Any]) -> Outcome | None:
    validator = compile_schema(closed(BEDS.input_schema))
    assert isinstance(validator, Validator)
    return check_arguments(BEDS, validator, arguments)


def test_members_that_a_model_cannot_use_are_left_out() -> None:
    given = {"code": "taken", "message": "Taken.", "details": {"next": "14"}, "method": "FIND", "digest": "ab"}
    assert error_members(BEDS, Outcome(422, error=given), GRANTING) == {
        "code": "taken",
        "message": "Taken.",
        "details": {"next": "14"},
        "remedy": "Act on the message and its details, or call again with other arguments.",
    }


@pytest.mark.parametrize(
    ("outcome", "remedy"),
    [
        (Outcome(455, error={"missing_scopes": ["a:b", "c:d"]}), "to this client; grant a:b and c:d."),
        (Outcome(422, error={"violations": []}), "Correct the arguments"),
        (Outcome(401), "scopes; pass an agent_id."),
        (Outcome(262), "scopes; pass an agent_id."),
        (Outcome(429, retry_after="7"), "in 7 seconds"),
        (Outcome(503), "later"),
        (Outcome(404, error={"code": "endpoint-not-found"}), "List the tools again"),
        (Outcome(500), "only if repeating does no harm"),
        (Outcome(403), "will be refused again"),
        (Outcome(403, error={"remedy": "Say please."}), "Say please."),
    ],
)
def test_every_refusal_says_what_to_do(outcome: Outcome, remedy: str) -> None:
    assert remedy in error_members(BEDS, outcome, GRANTING)["remedy"]


def test_arguments_that_fit_the_contract_are_not_refused() -> None:
    assert checked({"beds": 2}) is None
    assert check_arguments(BEDS, None, {"anything": 1}) is None


def test_unknown_arguments_are_refused_by_name() -> None:
    refused = checked({"bed": 2})
    assert refused is not None
    assert refused.status == 422
    assert "'bed' was unexpected" in refused.error["message"]


def test_arguments_that_cannot_be_validated_are_refused() -> None:
    refused = checked({"\ud800": 1})
    assert refused is not None
    assert (refused.status, refused.error["code"]) == (400, "invalid-arguments")
