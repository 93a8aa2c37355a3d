"""Refusals, faults and the outcomes they become."""

from __future__ import annotations

from bespeak.contract.grammar.syntax import parse_template
from bespeak.contract.limits import read_cost
from bespeak.contract.schema.validation import compile_schema
from bespeak.protocol.exchange.header_values import parse_budget
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.state.identity.jws import parse_key


def test_parsers_return_a_fault_that_names_the_wrong_part() -> None:
    assert parse_template("/room/{id}/bed/{id}") == Fault(
        "the parameter '{id}' occurs twice in '/room/{id}/bed/{id}'", "{id}"
    )
    faults = [
        parse_template("/room/{id}x"),
        parse_budget("tokens"),
        compile_schema({"properties": {"a": {"type": "x"}}}),
        *read_cost({"tokens": -1})[1],
        parse_key("none"),
    ]
    assert [fault.at for fault in faults if isinstance(fault, Fault)] == [
        *("{id}x", "tokens", "/properties/a/type", "tokens", "")
    ]


def test_refusal_is_an_outcome_with_its_details_and_a_waiting_call_names_its_case() -> None:
    found = refused(Refused(422, "sold", "The seat is sold.", {"free": ["A2"]}))
    assert found == Outcome(422, error={"code": "sold", "message": "The seat is sold.", "free": ["A2"]})
    assert (found.ok, Outcome(200, {"seat": "A1"}).ok) == (False, True)
    error = {"code": "confirmation-required", "message": "Wait.", "confirmation_id": "conf-1"}
    assert Outcome(262, error=error).confirmation_id == "conf-1"
    assert Outcome(262, error={**error, "code": "sold"}).confirmation_id is None
    assert Outcome(262, error={**error, "confirmation_id": 1}).confirmation_id is None
