"""Headers and hints beside the input."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.cost import read_cost
from bespeak.contract.policy import Policies
from bespeak.documents.projections.openapi.circumstances import Circumstances
from bespeak.documents.projections.openapi.parameters import PARAMETERS, parameters_of, token_hints
from bespeak.protocol.exchange.budget import UNITS
from bespeak.protocol.exchange.scope import Scopes, parse_scopes

BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
UNSAFE = replace(BOOK, semantic=replace(BOOK.semantic, is_idempotent=False))


def names(endpoint: object, mode: str = "open", **served: bool) -> set[str]:
    circumstances = Circumstances(modes=(mode,), policies=Policies(), **served)
    return {PARAMETERS[name]["name"] for name in parameters_of(endpoint, circumstances)}  # type: ignore[arg-type]


def test_a_key_is_for_what_may_not_be_done_twice_and_where_it_is_kept() -> None:
    assert "Idempotency-Key" in names(UNSAFE)
    assert "Idempotency-Key" not in names(BOOK)
    assert "Idempotency-Key" not in names(UNSAFE, keeps_state=False)


def test_a_key_that_the_operator_demands_is_required() -> None:
    served = Circumstances(modes=("open",), policies=Policies(), keys_required=True)
    assert "RequiredIdempotencyKey" in parameters_of(UNSAFE, served)
    assert PARAMETERS["RequiredIdempotencyKey"]["required"] is True
    assert "RequiredIdempotencyKey" not in parameters_of(BOOK, served)


def test_an_agent_and_its_scopes_are_claimed_only_where_claims_are_believed() -> None:
    assert {"Agent-ID", "Authority-Scope"} <= names(BOOK)
    assert {"Agent-ID", "Authority-Scope"}.isdisjoint(names(BOOK, "token"))


def test_the_agent_has_to_be_named_where_its_authority_is_needed() -> None:
    served = Circumstances(modes=("open",), policies=Policies(scope_required_for_invocation=False))
    assert "AgentId" in parameters_of(BOOK, served)
    assert "RequiredAgentId" in parameters_of(replace(BOOK, required_scopes=("room:book",)), served)
    assert PARAMETERS["RequiredAgentId"]["required"] is True


def test_a_budget_is_for_what_costs_and_a_confirmation_for_what_waits() -> None:
    assert {"Budget-Limit", "Confirmation-ID"}.isdisjoint(names(BOOK))
    assert "Budget-Limit" in names(replace(BOOK, cost=read_cost({"tokens": 5})[0]))
    assert "Confirmation-ID" in names(replace(BOOK, confirm=True))


def test_the_budget_has_every_unit() -> None:
    assert PARAMETERS["BudgetLimit"]["schema"]["properties"].keys() == UNITS.keys()


def test_hints_give_way_to_fields_of_the_input() -> None:
    assert token_hints(BOOK) == ["compact", "fields"]
    assert token_hints(replace(BOOK, since="rooms[].changed")) == ["compact", "fields", "since"]
    own = make_endpoint("FIND", "/room", echo, properties={"compact": {"type": "string"}})
    assert token_hints(own) == ["fields"]
    assert "compact" not in names(own)


@pytest.mark.parametrize("text", ["booking:room", "booking:*", "a:b, c:d", "a:b,c:d:e", "", "A:b", "room", "a:b;c:d"])
def test_the_pattern_of_scopes_is_what_the_server_reads(text: str) -> None:
    read = text == "" or isinstance(parse_scopes(text), Scopes)
    assert (re.search(PARAMETERS["AuthorityScope"]["schema"]["pattern"], text) is not None) == read
