"""Responses: the output, the declared errors, and the possible refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import DeclaredError, Deprecation
from bespeak.contract.limits import Rate, RateLimits, read_cost
from bespeak.contract.policy import Policies
from bespeak.documents.projections.openapi.responses import (
    HEADERS,
    Circumstances,
    refusals_of,
    responses_of,
    shared_responses,
)

LOOK = make_endpoint("FIND", "/room", echo)
BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
FREE = Policies(scope_required_for_invocation=False)


def served(**fields: Any) -> Circumstances:
    return Circumstances(**{"modes": ("open",), "policies": FREE, "keeps_state": False, **fields})


@rows(
    "endpoint, fields, more",
    (LOOK, {}, set()),
    (replace(LOOK, required_scopes=("a:b",)), {}, {403}),
    (LOOK, {"policies": Policies(scope_required_for_invocation=True)}, {403}),
    (LOOK, {"modes": ("token",)}, {403, 503}),
    (replace(LOOK, cost=read_cost({"tokens": 1})[0]), {}, {402}),
    (replace(LOOK, path="/room/{room_id}"), {}, {404}),
    (LOOK, {"rate_limits": RateLimits(agent=Rate(1, "s", 1))}, {429}),
    (LOOK, {"knows_agents": True}, {403, 410, 503}),
    (LOOK, {"keeps_state": True}, {503}),
    (replace(BOOK, semantic=replace(BOOK.semantic, is_idempotent=False)), {"keeps_state": True}, {409, 503}),
    (replace(BOOK, confirm=True), {}, {403, 404, 501}),
    (replace(BOOK, confirm=True), {"keeps_state": True}, {403, 404, 408, 409, 429, 503}),
)
def test_only_possible_refusals_are_documented(endpoint: Any, fields: dict[str, Any], more: set[int]) -> None:
    found = set(refusals_of(endpoint, served(**fields), has_body=False))
    assert found == {400, 401, 500} | more


def test_only_a_body_can_be_too_large_and_every_shared_header_is_defined() -> None:
    assert 413 in refusals_of(LOOK, served(), has_body=True)
    assert 413 not in refusals_of(LOOK, served(), has_body=False)
    for response in shared_responses().values():
        assert response["headers"].keys() <= HEADERS.keys()


def test_the_declared_errors_are_the_codes_of_422_and_its_examples() -> None:
    endpoint = replace(BOOK, errors=(DeclaredError("taken", "The room is taken."), DeclaredError("late")))
    found = responses_of(endpoint, served(), {}, has_body=True)["422"]
    content = found["content"]["application/problem+json"]
    assert content["schema"]["allOf"][1]["properties"]["code"]["enum"] == ["input-validation-failed", "taken", "late"]
    assert content["examples"]["taken"]["summary"] == "The room is taken."
    assert content["examples"]["late"]["value"]["code"] == "late"
    assert "The room is taken." in found["description"]


def test_warnings_and_costs_are_headers_of_the_answer() -> None:
    endpoint = replace(BOOK, deprecated=Deprecation(deprecated_in="1"), cost=read_cost({"tokens": 1})[0])
    circumstances = served(catalog_warnings={"BOOK": "deprecated"})
    headers = responses_of(endpoint, circumstances, {}, has_body=True)["200"]["headers"]
    assert {"AGTP-Status", "AGTP-Endpoint-Warning", "AGTP-Catalog-Warning", "Cost-Estimate"} <= headers.keys()
    plain = responses_of(BOOK, served(), {}, has_body=True)["200"]["headers"]
    assert plain.keys() == {"AGTP-Status", "Response-ID"}


@pytest.mark.parametrize(("since", "unchanged"), [(None, False), ("rooms[].changed", False), ("room.changed", True)])
def test_an_object_that_has_not_changed_is_not_sent_again(since: str | None, unchanged: bool) -> None:
    found = responses_of(replace(LOOK, since=since), served(), {}, has_body=False)
    assert ("304" in found) is unchanged


@rows(
    "impact, idempotent, taken, needed",
    ("informational", False, False, False),
    ("reversible", True, False, False),
    ("reversible", False, True, False),
    ("irreversible", False, True, True),
)
def test_key_is_needed_for_irreversible_calls_that_are_not_idempotent(
    impact: str, idempotent: bool, taken: bool, needed: bool
) -> None:
    endpoint = replace(BOOK, semantic=replace(BOOK.semantic, impact=impact, is_idempotent=idempotent))
    served = Circumstances(modes=("open",), policies=Policies(), keys_required=True)
    assert (served.takes_key(endpoint), served.needs_key(endpoint)) == (taken, needed)


def test_policy_demands_authority_and_makes_calls_wait() -> None:
    lenient = Circumstances(modes=("open",), policies=Policies(scope_required_for_invocation=False))
    assert not lenient.needs_authority(BOOK)
    assert lenient.needs_authority(replace(BOOK, required_scopes=("a:b",)))
    strict = Circumstances(modes=("open",), policies=Policies(scope_required_for_invocation=True))
    assert strict.needs_authority(BOOK)
    served = Circumstances(modes=("open",), policies=Policies(confirm_irreversible=True))
    assert served.confirms(BOOK)
    assert not served.confirms(replace(BOOK, confirm=False))
