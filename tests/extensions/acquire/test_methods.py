"""FETCH, SEARCH and FIND (Tier 2 3): by id, by words and filters, by criteria."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.acquire.test_collections import manifest, put
from tests.extensions.data.ledger import data_set
from tests.messaging import BOB
from tests.service import AGENT
from tests.stateful import StatefulBench, audited_backend, keeping
from tests.things import contracts, joining

from bespeak.contract.agent import Agent
from bespeak.contract.service import DataManifest

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
SERVICE = {"methods": ("FETCH", "SEARCH", "SCAN", "FIND", "REGISTER"), "participants": joining(contracts)}


async def call(bench: StatefulBench, method: str, agent: str = AGENT, authority: str = "", **given: Any) -> Any:
    headers = {"authority_scope": authority} if authority else {}
    return await bench.send(method, "/", given, agent=agent, **headers)


async def good(bench: StatefulBench, method: str, **given: Any) -> dict[str, Any]:
    reply = await call(bench, method, **given)
    assert reply.status == 200, reply.json
    result: dict[str, Any] = reply.json["result"]
    return result


async def code(bench: StatefulBench, method: str, **given: Any) -> tuple[int, str]:
    reply = await call(bench, method, **given)
    return reply.status, reply.json.get("error", {}).get("code", "")


@pytest.mark.requirement("METHODS-3.1-2", "METHODS-3.1-3", "METHODS-3.1-4", "METHODS-3.1-6")
async def test_fetch_returns_a_resource_in_the_version_and_format_asked_for() -> None:
    async with keeping(**SERVICE) as bench:
        await put(bench.store, {"id": "k1", "title": "First"})
        await put(bench.store, {"id": "k1", "title": "Second"})
        for name in ("res-1", "papers/k1"):
            found = await good(bench, "FETCH", resource_id=name)
            assert (found["content"], found["version"]) == ({"id": "k1", "title": "Second"}, 2)
            assert (found["owner"], found["collection"], found["modified"]) == (AGENT, "papers", True)
        assert (await good(bench, "FETCH", resource_id="res-1", version=1))["content"]["title"] == "First"
        assert (await good(bench, "FETCH", resource_id="res-1", format="yaml"))["content"] == "id: k1\ntitle: Second\n"
        assert await code(bench, "FETCH", resource_id="res-1", version=3) == (404, "version-not-found")
        later = await good(bench, "FETCH", resource_id="res-1", if_modified_since="2100-01-01T00:00:00Z")
        assert (later["modified"], "content" in later) == (False, False)
        earlier = await good(bench, "FETCH", resource_id="res-1", if_modified_since="2020-01-01T00:00:00Z")
        assert earlier["modified"]
        assert await code(bench, "FETCH", resource_id="res-1", if_modified_since="soon") == (400, "invalid-time")


@pytest.mark.requirement("METHODS-3.1-5")
async def test_fetch_of_what_the_caller_may_not_read_answers_like_what_does_not_exist(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, sensitivity="high")) as bench:
        await put(bench.store, {"id": "k1"})
        body = {"entity_type": "contract", "data": {"title": "Lease"}}
        entity = (await bench.send("REGISTER", "/", body)).json["result"]["entity_id"]
        for name in ("res-1", "papers/k1", entity, "ledger/1"):
            assert await code(bench, "FETCH", agent=BOB, resource_id=name) == (404, "resource-not-found"), name
        readers = {"res-1": "papers:read", entity: "contract:read", "ledger/1": "data:ledger"}
        for name, scope in readers.items():
            assert (await good(bench, "FETCH", agent=BOB, authority=scope, resource_id=name))["content"], name
        for name in ("res-99", "res-0", "res-99999999999999999999", "ledger/x", "ledger/'; --", "nothing/1", "ent-1"):
            refused = await code(bench, "FETCH", authority="data:ledger", resource_id=name)
            assert refused == (404, "resource-not-found"), name


async def test_fetch_returns_rows_of_data_sets_and_entities_by_their_id(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path)) as bench:
        assert (await good(bench, "FETCH", resource_id="ledger/4"))["content"]["memo"] == "rent, again"
        body = {"entity_type": "contract", "data": {"title": "Lease"}}
        entity = (await bench.send("REGISTER", "/", body)).json["result"]["entity_id"]
        found = await good(bench, "FETCH", resource_id=entity, version=1)
        assert (found["content"], found["owner"]) == ({"title": "Lease", "pages": 1}, AGENT)
        assert await code(bench, "FETCH", resource_id=entity, version=2) == (404, "version-not-found")


@pytest.mark.requirement("METHODS-3.2-1", "METHODS-3.2-2", "METHODS-3.2-3", "METHODS-3.2-4", "METHODS-3.2-5")
async def test_search_filters_sorts_and_pages_within_the_scope(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path)) as bench:
        await put(bench.store, {"id": "1", "amount": 70}, {"id": "2", "amount": 5}, {"id": "3", "amount": "70"})
        found = await good(bench, "SEARCH", query={"amount": {"min": 6}}, scope="papers")
        assert [one["item"]["id"] for one in found["results"]] == ["1"]
        query = {"account": "a-1", "booked": {"min": "2026-01-02"}}
        page = await good(bench, "SEARCH", query=query, scope=["ledger"], sort="-amount", limit=2)
        assert ([one["item"]["id"] for one in page["results"]], page["next_offset"]) == ([6, 4], 2)
        page = await good(bench, "SEARCH", query=query, scope="ledger", sort=["-amount"], limit=2, offset=2)
        assert ([one["item"]["id"] for one in page["results"]], "next_offset" in page) == ([2], False)
        both = await good(bench, "SEARCH", query={"amount": {"min": 10}}, scope=["ledger", "papers"], sort="amount")
        assert [one["item"]["amount"] for one in both["results"]] == [10.5, 10.5, 70, 99999999.25]


@pytest.mark.requirement("METHODS-3.2-6")
async def test_search_by_words_ranks_counts_and_marks_what_it_found(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path)) as bench:
        await put(bench.store, {"t": "The sea, the sea", "n": 1}, {"t": "A sea of trouble", "n": 2}, {"t": "Land"})
        found = await good(bench, "SEARCH", query="SEA", scope="papers")
        assert [one["item"]["n"] for one in found["results"]] == [1, 2]
        assert found["results"][0]["score"] > found["results"][1]["score"]
        assert found["results"][1]["highlights"] == {"t": "A **sea** of trouble"}
        assert (found["total"], found["total_is_estimate"]) == (2, False)
        assert (await good(bench, "SEARCH", query="sea", filter={"n": 2}, scope="papers"))["total"] == 1
        everywhere = await good(bench, "SEARCH", query="rent")
        assert [one["item"]["id"] for one in everywhere["results"]] == [1, 4]
        for query in ('sea" OR *', "sea NEAR/2 land", "NOT sea", "papers : sea", "sea*)"):
            assert (await call(bench, "SEARCH", query=query)).status == 200, query


@pytest.mark.requirement("METHODS-3.2-7")
async def test_search_refuses_what_it_cannot_mean(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path)) as bench:
        wrong: list[tuple[dict[str, Any], int, str]] = [
            ({"query": "..."}, 422, "invalid-query"),
            ({"query": {"amount": {"near": 3}}}, 422, "invalid-query"),
            ({"query": {"amount": None}}, 422, "invalid-query"),
            ({"query": {"amount": {"in": []}}}, 422, "invalid-query"),
            ({"query": {"a": 1}, "filter": {"a": 1}}, 422, "invalid-filter"),
            ({"query": {"salary": 1}, "scope": "ledger"}, 422, "invalid-query"),
            ({"query": {"booked": {"min": "soon"}}, "scope": "ledger"}, 422, "invalid-query"),
            ({"query": "a", "scope": "nothing"}, 404, "collection-not-found"),
        ]
        for given, number, name in wrong:
            assert await code(bench, "SEARCH", **given) == (number, name), given


@pytest.mark.requirement("METHODS-3.5-1", "METHODS-3.5-2", "METHODS-3.5-3", "METHODS-3.5-4")
async def test_find_locates_agents_endpoints_and_entities(tmp_path: Path) -> None:
    agents = (
        Agent(agent_id=AGENT, name="ann", methods=("VALIDATE", "FETCH"), trust_tier=1),
        Agent(agent_id=BOB, name="bob", methods=("FETCH",), trust_tier=1),
    )
    async with keeping(**SERVICE, agents=agents, data_manifest=manifest(tmp_path)) as bench:
        found = await good(bench, "FIND", criteria={"methods": ["validate"]}, namespace="agents")
        assert [(one["id"], one["name"]) for one in found["found"]] == [(AGENT, "ann")]
        found = await good(bench, "FIND", criteria={"method": "SEARCH"}, namespace="endpoints")
        assert [one["id"] for one in found["found"]] == ["SEARCH /"]
        body = {"entity_type": "contract", "data": {"title": "Lease", "pages": 7}}
        entity = (await bench.send("REGISTER", "/", body)).json["result"]["entity_id"]
        for namespace in ("contract", "entities"):
            found = await good(bench, "FIND", criteria={"pages": {"min": 5}}, namespace=namespace)
            assert [one["id"] for one in found["found"]] == [entity]
        found = await good(bench, "FIND", criteria={"account": "a-1"}, namespace="ledger", limit=2)
        assert ([one["id"] for one in found["found"]], found["more"]) == (["ledger/1", "ledger/2"], True)
        assert await code(bench, "FIND", criteria={}, namespace="moons") == (404, "unknown-namespace")
        for criteria in ({"shoe": 1}, {"methods": 3}, {"methods": [1]}):
            assert await code(bench, "FIND", criteria=criteria, namespace="agents") == (422, "invalid-criteria")
        assert await code(bench, "FIND", criteria={"shoe": 1}, namespace="endpoints") == (422, "invalid-criteria")


@pytest.mark.requirement("METHODS-3.1-9", "METHODS-3.3-6")
async def test_a_source_that_is_not_read_in_time_is_408(tmp_path: Path) -> None:
    async def never() -> list[dict[str, Any]]:
        await asyncio.Event().wait()
        return []

    slow = replace(data_set("function", tmp_path, timeout=0.1), target=never)
    async with keeping(**SERVICE, data_manifest=DataManifest(available_data=(slow,))) as bench:
        assert await code(bench, "SCAN", collection="ledger") == (408, "data-timeout")
        assert await code(bench, "FETCH", resource_id="ledger/1") == (408, "data-timeout")
