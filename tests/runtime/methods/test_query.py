"""QUERY /: search over the resources an operator registered."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.service import Bench, build

from bespeak.contract.policy import Policies
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


@pytest.mark.requirement("CORE-9-5")
def test_a_resource_of_mcp_is_read() -> None:
    uri = "bespeak://test.example/manifest"
    asked = {"intent": "the contract", "scope": "test.example", "modality": "mcp.resource", "mcp_resource_uri": uri}
    bench = build()
    [found] = ask(bench, asked)["result"]["results"]
    assert (found["source"], found["confidence"]) == (uri, 1.0)
    assert found["content"]["mimeType"] == "application/vnd.agtp.manifest+json"
    assert msgspec.json.decode(found["content"]["text"]) == bench.send("DISCOVER", "/").json


@pytest.mark.parametrize("named", [{"mcp_resource_uri": "bespeak://test.example/ledger"}, {"modality": "mcp.resource"}])
def test_an_unknown_resource_of_mcp_is_refused_with_those_that_exist(named: dict[str, str]) -> None:
    error = ask(build(), {"intent": "x", **named})["error"]
    assert (error["code"], error["resources"][1]) == ("resource-not-found", "bespeak://test.example/agis")


def test_strangers_read_no_resource_where_discovery_is_closed() -> None:
    closed = build(policies=Policies(anonymous_discovery=False))
    asked = {"intent": "x", "mcp_resource_uri": "bespeak://test.example/manifest"}
    assert ask(closed, asked)["error"]["type"] == "anonymous-discovery-disabled"
