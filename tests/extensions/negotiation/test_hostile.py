"""Proposals of a hostile agent: what it must not take from others, from operators and from the server."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.negotiation.definitions import fields
from tests.extensions.negotiation.negotiating import FIND, LODGINGS, OTHER, SESSION, lodgings, negotiating, refunds
from tests.service import echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.runtime import concurrency

pytestmark = pytest.mark.anyio

ANY = tuple(
    replace(LODGINGS, name=f"any-{verb.lower()}", pattern={"name_exact": verb})
    for verb in ("FIND", "FETCH", "QUERY", "DISCOVER", "SUSPEND")
)
"""Recipes that answer proposals of any path."""
CANCELLING = {"authority_scope": "stays:cancel"}
ROME = {"town": "Rome"}


def fetch_room(number: str) -> dict[str, Any]:
    return {"number": number}


ROOM = make_endpoint(
    "FETCH", "/rooms/{number}", fetch_room, properties={"number": {"type": "string"}}, required=("number",)
)


async def keep(bench: StatefulBench, **changes: Any) -> dict[str, Any]:
    approved = await bench.send("PROPOSE", "/", {"endpoint": lodgings(**changes), "persistent": True})
    assert (approved.status, approved.json["persistent"]) == (263, True), approved.json
    body: dict[str, Any] = approved.json
    return body


@rows(
    "method, path",
    *(("QUERY", "/"), ("SUSPEND", "/"), ("DISCOVER", "/methods"), ("DISCOVER", "/agents")),
    *(("DISCOVER", "/agents/{a}"), ("QUERY", "/proposals"), ("QUERY", "/proposals/{a}")),
)
@pytest.mark.parametrize("persistent", [False, True])
async def test_built_in_methods_are_not_replaced(method: str, path: str, persistent: bool) -> None:
    schema = fields("town", *(["a"] if "{" in path else []))
    async with negotiating(recipes=ANY, persistent=True) as bench:
        body = {"endpoint": lodgings(method=method, path=path, input_schema=schema), "persistent": persistent}
        refused = await bench.send("PROPOSE", "/", body)
        assert (refused.status, refused.json["reason"]) == (463, "policy-refused")
        assert "counter_proposal" not in refused.json


async def test_kept_path_is_not_taken_from_the_template_of_an_operator() -> None:
    async with negotiating(FIND, ROOM, recipes=ANY, persistent=True) as bench:
        await keep(bench, method="FETCH", path="/rooms/12")
        await keep(bench, method="QUERY", path="/proposals/prop-1")
        for agent in (OTHER, None):
            assert (await bench.send("FETCH", "/rooms/12", agent=agent)).json == {"number": "12"}
            assert (await bench.send("QUERY", "/proposals/prop-1", agent=agent)).error["code"] == "proposal-not-found"
        assert "rooms" in (await bench.send("FETCH", "/rooms/12", ROME)).json


@pytest.mark.parametrize("path", ["/lodgings/{x}", "/{y}/cheap"])
async def test_operator_adds_an_endpoint_where_a_synthesis_is_kept(path: str) -> None:
    async with negotiating(recipes=ANY, persistent=True) as bench:
        kept = await keep(bench, path="/lodgings/{x}", input_schema=fields("town", "x"))
        named = path[path.index("{") + 1]
        added = make_endpoint("FIND", path, echo, properties={named: {"type": "string"}}, required=(named,))
        importable = replace(added.handler, function="tests.service.echo")
        await bench.bench.server.add_endpoint(replace(added, handler=importable))
        negotiator = bench.bench.server.own_endpoints
        assert negotiator is not None
        for _ in range(2):
            found = await bench.send("FIND", "/lodgings/cheap", agent=OTHER)
            assert found.json == {named: "cheap" if named == "x" else "lodgings"}
            await negotiator.refresh()
        served = bench.bench.routes.endpoints
        if path != kept["path"]:
            assert ("FIND", kept["path"]) not in served, "the two would be ambiguous"
        # Its agent still has it, by its id.
        by_id = {"synthesis_id": kept["synthesis_id"]}
        assert (await bench.send("FIND", "/lodgings/x", ROME, **by_id)).status == 200


async def test_overlapping_templates_of_one_agent_are_told_apart() -> None:
    async with negotiating(recipes=ANY) as bench:
        found = set()
        for path, name in (("/a/{x}", "x"), ("/{y}/b", "y"), ("/a/{z}", "z")):
            schema = fields("town", name)
            approved = await bench.send("PROPOSE", "/", lodgings(path=path, input_schema=schema))
            assert approved.status == 263
            named = {"synthesis_id": approved.json["synthesis_id"]}
            called = await bench.send("FIND", "/a/b", ROME, **named)
            found.add(called.header("Contract-Synthesized"))
            assert (await bench.send("FIND", "/a/b", ROME)).status == 200
        assert len(found) == 3


@pytest.mark.requirement("API-10.4-1", "API-10.4-2")
async def test_authority_is_that_of_each_call(bench: StatefulBench) -> None:
    narrow = {"authority_scope": "stays:read"}
    assert (await bench.send("PROPOSE", "/", refunds(), **narrow)).status == 262
    assert (await bench.send("PROPOSE", "/", refunds(), **CANCELLING)).status == 263
    refund = ("REFUND", "/refunds", {"stay": "7"})
    assert (await bench.send(*refund, **narrow)).status == 455
    assert (await bench.send(*refund)).status == 455
    chained = {**CANCELLING, "delegation_chain": f"{OTHER}; stays:read"}
    assert (await bench.send(*refund, **chained)).status in (455, 551)
    assert (await bench.send(*refund, **CANCELLING)).status == 200


async def test_session_of_another_agent_gives_nothing(bench: StatefulBench) -> None:
    approved = await bench.send("PROPOSE", "/", lodgings(), session_id=SESSION)
    named = {"synthesis_id": approved.json["synthesis_id"]}
    for headers in ({}, named, {"contract_synthesized": approved.json["synthesis_id"]}):
        taken = await bench.send("FIND", "/lodgings", ROME, agent=OTHER, session_id=SESSION, **headers)
        assert taken.status in (403, 404)
    proposed = await bench.send("PROPOSE", "/", lodgings(), agent=OTHER, session_id=SESSION)
    assert (proposed.status, proposed.error["code"]) == (403, "session-of-another")
    assert (await bench.send("FIND", "/lodgings", ROME, session_id=SESSION)).status == 200


async def test_negotiation_of_another_agent_is_neither_read_nor_used_up(bench: StatefulBench) -> None:
    mine = await bench.send("PROPOSE", "/", refunds("informational"), **CANCELLING)
    stolen = {"negotiation_id": mine.json["negotiation_id"]}
    countered = mine.json["counter_proposal"]
    for _ in range(4):
        other = await bench.send("PROPOSE", "/", lodgings(path="/nowhere"), agent=OTHER, **stolen)
        assert other.json.get("proposal_id") != mine.json["proposal_id"]
    accepted = await bench.send("PROPOSE", "/", countered, **stolen, **CANCELLING)
    assert accepted.status == 263, "the rejections of another agent do not count"


async def test_many_proposals_at_once_are_refused_and_occupy_few_threads() -> None:
    busiest = 0
    async with negotiating(recipes=ANY) as bench:
        before = concurrency.running_threads()
        mine = await asyncio.gather(*(bench.send("PROPOSE", "/", lodgings(path=f"/x{n}")) for n in range(100)))
        assert Counter(reply.status for reply in mine) == {263: 1, 429: 99}
        agents = [f"{number:064x}" for number in range(100)]
        all_at_once = [asyncio.create_task(bench.send("PROPOSE", "/", lodgings(), agent=agent)) for agent in agents]
        while not all(task.done() for task in all_at_once):
            busiest = max(busiest, concurrency.running_threads() - before)
            await asyncio.sleep(0)
        answered = Counter(task.result().status for task in all_at_once)
        assert set(answered) == {263, 429}
        assert answered[263] >= 32
        assert busiest <= 2
        assert all(task.result().header("Retry-After") for task in all_at_once if task.result().status == 429)


@pytest.mark.parametrize("given", ["syn-\r\nX: 1", "x\x00y", "syn-" + "x" * 1_000_000, ""])
async def test_ids_that_no_server_issues_do_not_reach_the_store(bench: StatefulBench, given: str) -> None:
    assert (await bench.send("FIND", "/lodgings", ROME, synthesis_id=given)).status == 404
    assert (await bench.send("QUERY", "/proposals", {"proposal_id": given})).status == 422
    assert (await bench.send("SUSPEND", "/", {"synthesis_id": given})).status == 422
    assert (await bench.send("INSPECT", "/", {"target": "contract", "synthesis_id": given})).status == 422
    assert (await bench.send("QUERY", "/proposals/%00")).status == 422


@rows(
    "changes",
    {"description": "Finds\x1b[2J rooms."},
    {"errors": [{"name": "full", "description": "\x1b]0;owned\x07"}]},
    {"errors": ["\x1b[2J"]},
    {"output_schema": {"type": "object", "properties": {"\x1b[2J": {}}}},
    {"output_schema": {"type": "object", "properties": {"rooms": {"type": "array", "title": "\u202eevil"}}}},
)
async def test_terminal_escapes_are_refused(changes: dict[str, Any]) -> None:
    async with negotiating(recipes=ANY) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings(**changes))).status == 400
