"""Headers and hints beside the input."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.limits import read_cost
from bespeak.contract.policy import Policies
from bespeak.documents.projections.openapi.document import PARAMETERS, parameters_of, token_hints
from bespeak.documents.projections.openapi.responses import Circumstances
from bespeak.protocol.exchange.header_values import UNITS
from bespeak.protocol.exchange.principal import Scopes, parse_scopes

BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
UNSAFE = replace(BOOK, semantic=replace(BOOK.semantic, is_idempotent=False))


def names(endpoint: object, mode: str = "open", **served: bool) -> set[str]:
    circumstances = Circumstances(modes=(mode,), policies=Policies(), **served)
    return {PARAMETERS[name]["name"] for name in parameters_of(endpoint, circumstances)}  # type: ignore[arg-type]


def test_key_is_offered_for_non_idempotent_calls_with_a_store() -> None:
    assert "Idempotency-Key" in names(UNSAFE)
    assert "Idempotency-Key" not in names(BOOK)
    assert "Idempotency-Key" not in names(UNSAFE, keeps_state=False)


def test_a_key_that_the_operator_demands_is_required() -> None:
    served = Circumstances(modes=("open",), policies=Policies(), keys_required=True)
    assert "RequiredIdempotencyKey" in parameters_of(UNSAFE, served)
    assert PARAMETERS["RequiredIdempotencyKey"]["required"] is True
    assert "RequiredIdempotencyKey" not in parameters_of(BOOK, served)


def test_agent_and_scope_headers_are_offered_only_in_open_mode() -> None:
    assert {"Agent-ID", "Authority-Scope"} <= names(BOOK)
    assert {"Agent-ID", "Authority-Scope"}.isdisjoint(names(BOOK, "token"))


def test_agent_header_is_required_if_authority_is_needed() -> None:
    served = Circumstances(modes=("open",), policies=Policies(scope_required_for_invocation=False))
    assert "AgentId" in parameters_of(BOOK, served)
    assert "RequiredAgentId" in parameters_of(replace(BOOK, required_scopes=("room:book",)), served)
    assert PARAMETERS["RequiredAgentId"]["required"] is True


def test_budget_and_confirmation_headers_are_offered_where_they_apply() -> None:
    assert {"Budget-Limit", "Confirmation-ID"}.isdisjoint(names(BOOK))
    assert "Budget-Limit" in names(replace(BOOK, cost=read_cost({"tokens": 5})[0]))
    assert "Confirmation-ID" in names(replace(BOOK, confirm=True))


def test_the_budget_has_every_unit() -> None:
    assert PARAMETERS["BudgetLimit"]["schema"]["properties"].keys() == UNITS.keys()


def test_input_fields_take_precedence_over_hints() -> None:
    assert token_hints(BOOK) == ["compact", "fields"]
    assert token_hints(replace(BOOK, since="rooms[].changed")) == ["compact", "fields", "since"]
    own = make_endpoint("FIND", "/room", echo, properties={"compact": {"type": "string"}})
    assert token_hints(own) == ["fields"]
    assert "compact" not in names(own)


@pytest.mark.parametrize("text", ["booking:room", "booking:*", "a:b, c:d", "a:b,c:d:e", "", "A:b", "room", "a:b;c:d"])
def test_the_pattern_of_scopes_is_what_the_server_reads(text: str) -> None:
    read = text == "" or isinstance(parse_scopes(text), Scopes)
    assert (re.search(PARAMETERS["AuthorityScope"]["schema"]["pattern"], text) is not None) == read
