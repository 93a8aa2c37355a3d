"""INSPECT, DESCRIBE and QUERY /: what a caller may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.state.audit.trails import append_one, make_sealer
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.contract.service import Resource
from bespeak.errors import StoreUnavailableError
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.state.store.commands.agents import PutAgent, ReadLifecycle
from bespeak.state.store.commands.audit import ReadAudit, ReadChainHead
from bespeak.state.store.settings import open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
AUDITOR = "c" * 64


@pytest.fixture
async def bench() -> AsyncIterator[StatefulBench]:
    async with keeping(store=open_store("memory", role="sole"), require_known_agents=False) as made:
        made.store.attach(make_sealer())
        yield made


@pytest.mark.requirement("CORE-12-9")
async def test_an_agent_inspects_its_own_record(bench: StatefulBench) -> None:
    record = await append_one(bench.store, AGENT, status=200)
    reply = await bench.send("INSPECT", "/", {"target": "audit", "audit_id": record.audit_id})
    assert reply.status == 200
    result = reply.json["result"]
    assert (result["audit_id"], result["attribution_record"]) == (record.audit_id, record.jws)
    assert (result["record"]["agent_id"], result["record"]["status"]) == (AGENT, 200)
    assert (result["stream"], result["sequence"]) == (record.stream, record.sequence)


@pytest.mark.requirement("CORE-10.1-11")
@pytest.mark.parametrize("owner", [AGENT, ""])
async def test_records_of_others_need_the_scope(bench: StatefulBench, owner: str) -> None:
    record = await append_one(bench.store, owner)
    body = {"target": "audit", "audit_id": record.audit_id}
    refused = await bench.send("INSPECT", "/", body, agent=OTHER, authority_scope="audit:write")
    assert (refused.status, refused.error["code"]) == (403, "inspection-forbidden")
    assert refused.error["required_scopes"] == ["audit:read"]
    missing = await bench.send(
        "INSPECT", "/", body | {"audit_id": "e" * 64}, agent=OTHER, authority_scope="audit:write"
    )
    assert missing.json == refused.json  # a record of another agent is not distinguishable from a missing one
    for audit_id, status in ((record.audit_id, 200), ("e" * 64, 404)):
        asked = {"target": "audit", "audit_id": audit_id}
        assert (await bench.send("INSPECT", "/", asked, agent=AUDITOR, authority_scope="audit:read")).status == status


@pytest.mark.requirement("CORE-12-9")
async def test_the_head_of_a_chain_is_the_latest_record_by_default_of_the_caller(bench: StatefulBench) -> None:
    await append_one(bench.store, AGENT)
    last = await append_one(bench.store, AGENT)
    await append_one(bench.store, OTHER)
    assert (await bench.send("INSPECT", "/", {"target": "chain_head"})).json["result"]["audit_id"] == last.audit_id
    assert (await bench.send("INSPECT", "/", {"target": "chain_head", "agent_id": OTHER})).status == 403


@pytest.mark.requirement("CORE-12-9")
async def test_an_agent_can_inspect_its_own_history(bench: StatefulBench) -> None:
    await bench.store.do(PutAgent(AGENT, "porter", "active", "{}", "operator"))
    reply = await bench.send("INSPECT", "/", {"target": "lifecycle", "agent_id": AGENT})
    assert (reply.status, reply.json["result"]["status"]) == (200, "active")
    [event] = reply.json["result"]["events"]
    assert (event["event"], event["actor"]) == ("REGISTER", "operator")
    assert (await bench.send("INSPECT", "/", {"target": "lifecycle", "agent_id": AGENT}, agent=OTHER)).status == 403


@rows(
    "body, status, code",
    ({"target": "audit", "audit_id": "e" * 64}, 403, "inspection-forbidden"),
    ({"target": "chain_head"}, 404, "record-not-found"),
    ({"target": "lifecycle"}, 404, "agent-not-found"),
    ({"target": "audit"}, 422, "invalid-audit-id"),
    ({"target": "audit", "audit_id": "../etc"}, 422, None),
    ({"target": "secrets"}, 422, None),
    ({}, 422, None),
)
async def test_unknown_and_ambiguous_targets_are_explained(
    bench: StatefulBench, body: dict[str, str], status: int, code: str | None
) -> None:
    reply = await bench.send("INSPECT", "/", body)
    assert reply.status == status
    assert code is None or reply.error["code"] == code


@pytest.mark.parametrize("target", ["audit", "chain_head", "lifecycle"])
async def test_strangers_inspect_nothing(bench: StatefulBench, target: str) -> None:
    record = await append_one(bench.store, "")
    reply = await bench.send("INSPECT", "/", {"target": target, "audit_id": record.audit_id}, agent=None)
    assert (reply.status, reply.error["code"]) == (262, "authorization-required")


async def test_store_that_cannot_be_read_is_a_503_and_no_fault_of_the_method(caplog: pytest.LogCaptureFixture) -> None:
    class Unreadable(SqliteStore):
        async def read(self, command: Command) -> Any:
            if isinstance(command, ReadChainHead | ReadAudit | ReadLifecycle):
                raise StoreUnavailableError("The disk does not answer.")
            return await super().read(command)

    bodies = ({"target": "chain_head"}, {"target": "lifecycle"}, {"target": "audit", "audit_id": "e" * 64})
    async with keeping(store=Unreadable.in_memory()) as bench:
        for body in bodies:
            for headers in ({}, {"idempotency_key": "k"}):
                reply = await bench.send("INSPECT", "/", body, **headers)
                assert (reply.status, reply.error["code"]) == (503, "store-unavailable")
                assert reply.header("Retry-After") == "2"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.requirement("CORE-4.3-3")
def test_an_unknown_domain_or_missing_store_is_refused() -> None:
    assert build().send("INSPECT", "/", {"target": "chain_head"}, agent_id=AGENT).refusal == (501, "not-implemented")
    assert build().send("DESCRIBE", "/", {"capability_domains": ["moods"]}).told("unknown") == (422, ["moods"])


async def test_agent_inspects_its_synthesized_contract() -> None:
    async with negotiating() as bench:
        approved = (await bench.send("PROPOSE", "/", lodgings())).json
        body = {"target": "contract", "synthesis_id": approved["synthesis_id"]}
        shown = (await bench.send("INSPECT", "/", body)).json["result"]
        assert shown["endpoint"] == approved["endpoint"]
        assert (shown["state"], shown["agent_id"], shown["plan"]) == ("approved", AGENT, ["Calls FIND /rooms."])
        refused = await bench.send("INSPECT", "/", body, agent=OTHER)
        unknown = await bench.send("INSPECT", "/", {**body, "synthesis_id": "syn-0"}, agent=OTHER)
        assert (refused.status, refused.json) == (403, unknown.json)
        assert (await bench.send("INSPECT", "/", body, agent=OTHER, authority_scope="audit:read")).status == 200
        assert (await bench.send("INSPECT", "/", {"target": "contract"})).status == 422


@pytest.mark.requirement("CORE-4.3-2", "CORE-4.3-3")
def test_the_capability_document_covers_all_domains_or_those_asked_for() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    document = bench.send("DESCRIBE", "/").json["result"]
    assert document.keys() == {"methods", "modalities", "tools", "version", "budget_units_accepted", "zones_accepted"}
    assert "BOOK" in document["methods"]
    assert (document["tools"], document["version"]) == (["BOOK /room"], "1.0")
    assert bench.send("DESCRIBE", "/", {"capability_domains": "zones, version"}).json["result"] == {
        "zones_accepted": [],
        "version": "1.0",
    }


@pytest.mark.requirement("CORE-4.3-4")
def test_the_least_version_is_compared_by_numbers() -> None:
    for least, satisfied in (("1.0", True), ("0.9", True), ("1.10", False), ("2", False)):
        result = build().send("DESCRIBE", "/", {"version_min": least}).json["result"]
        assert result["version_min_satisfied"] is satisfied


def test_a_hosted_agent_gets_its_own_document() -> None:
    agent = Agent(agent_id=AGENT, name="concierge", document={"agent_id": AGENT, "name": "concierge"})
    reply = build(agents=(agent,)).send("DESCRIBE", "/", agent_id=AGENT)
    assert reply.header("Content-Type") == "application/vnd.agtp.identity+json"
    assert (reply.json["agent_id"], reply.json["name"], reply.json["status"]) == (AGENT, "concierge", "active")
    hidden = build(agents=(agent,), agent_disclosure="private").send("DESCRIBE", "/", agent_id=AGENT)
    assert "methods" in hidden.json["result"]


@pytest.mark.requirement("API-14.1-2")
def test_unreviewed_endpoints_are_named_in_manifest_and_description() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo), replace(make_endpoint("FIND", "/room", echo), reviewed=False))
    assert bench.send("DESCRIBE", "/").json["result"]["unreviewed"] == ["FIND /room"]
    listed = {one["method"]: one for one in bench.send("DISCOVER", "/").json["endpoints"] if one["path"] == "/room"}
    assert listed["FIND"]["reviewed"] is False
    assert "reviewed" not in listed["BOOK"]


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
    assert (result["result_count"], result["results"][0]["content"]) == (1, "Breakfast is served from seven.")
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


def test_strangers_and_servers_without_resources_read_none() -> None:
    refused = ask(build(), {"intent": "anything"})
    assert (refused["status"], refused["error"]["missing"]) == (501, "resources to search")
    closed = build(policies=Policies(anonymous_discovery=False))
    asked = {"intent": "x", "mcp_resource_uri": "bespeak://test.example/manifest"}
    assert ask(closed, asked)["error"]["type"] == "anonymous-discovery-disabled"


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
