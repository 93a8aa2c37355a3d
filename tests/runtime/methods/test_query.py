"""QUERY /: search over the resources an operator registered."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.service import Bench, build

from bespeak.contract.service import Resource
from bespeak.protocol.exchange.messages import Request, Response

RULES = Resource(
    name="rules",
    description="House rules.",
    items=lambda: ["Breakfast is served from seven.", "Dogs are welcome.", {"topic": "parking", "price": 9}],
)


def ask(bench: Bench, body: dict[str, Any]) -> dict[str, Any]:
    async def run() -> Response:
        request = Request("QUERY", "/", "", {}, msgspec.json.encode(body), bench.connection)
        answer = bench.dispatcher(request)
        return answer if isinstance(answer, Response) else await answer

    decoded: dict[str, Any] = msgspec.json.decode(asyncio.run(run()).body)
    return decoded


@pytest.mark.requirement("CORE-4.1-2", "CORE-4.1-3")
def test_matches_are_returned_best_first_with_source_and_confidence() -> None:
    result = ask(build(resources=(RULES,)), {"intent": "When is breakfast served?"})["result"]
    assert result["result_count"] == 1
    assert result["results"][0]["content"] == "Breakfast is served from seven."
    assert result["results"][0]["source"] == "rules"
    assert 0 < result["results"][0]["confidence"] <= 1


@pytest.mark.requirement("CORE-4.1-4")
def test_objects_are_searched_too_and_the_threshold_holds() -> None:
    bench = build(resources=(RULES,))
    assert ask(bench, {"intent": "parking"})["result"]["results"][0]["content"] == {"topic": "parking", "price": 9}
    unsure = {"intent": "parking lions tigers"}
    assert len(ask(bench, unsure)["result"]["results"]) == 1
    assert ask(bench, {**unsure, "confidence_threshold": 0.9})["result"]["results"] == []


@pytest.mark.requirement("CORE-4.1-5")
def test_a_scope_names_the_resources_to_search() -> None:
    pets = Resource(name="pets", description="Pets.", items=lambda: ["Dogs sleep in the barn."])
    bench = build(resources=(RULES, pets))
    for scope, sources in ((None, {"rules", "pets"}), ("rules", {"rules"}), (["pets"], {"pets"})):
        result = ask(bench, {"intent": "dogs", **({} if scope is None else {"scope": scope})})["result"]
        assert {found["source"] for found in result["results"]} == sources
    refused = ask(bench, {"intent": "dogs", "scope": ["attic"]})
    assert (refused["status"], refused["error"]["resources"]) == (404, ["rules", "pets"])


def test_without_resources_the_refusal_names_the_reason() -> None:
    refused = ask(build(), {"intent": "anything"})
    assert (refused["status"], refused["error"]["missing"]) == (501, "resources to search")
