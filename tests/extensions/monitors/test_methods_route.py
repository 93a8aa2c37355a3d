"""ROUTE gives an item to the best handler that can be reached, judged by the statistics of earlier calls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import AGENT, build, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.messages.store import ListMessages
from bespeak.extensions.monitors import health
from bespeak.extensions.monitors.routing import RouteCandidate, parse_candidate
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Context

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
METHODS = ("ROUTE", "CHAIN", "QUOTE")


def desk(path: str, function: Any = None, **fields: Any) -> Endpoint:
    given = {"topic": {"type": "string"}, "nights": {"type": "integer"}, "n": {"type": "integer"}}
    answer = function or (lambda _: {"at": path})
    return make_endpoint("BOOK", path, answer, properties=given, impact="reversible", **fields)


async def route(bench: StatefulBench, *candidates: Any, payload: Any = None, **fields: Any) -> Any:
    body = {"payload": {} if payload is None else payload, "criteria": {}, **fields}
    if candidates:
        body["candidates"] = list(candidates)
    return await bench.send("ROUTE", "/", body)


async def chosen(bench: StatefulBench, *candidates: Any, **fields: Any) -> Any:
    reply = await route(bench, *candidates, **fields)
    assert reply.status == 200, reply.json
    return reply.json["result"]


@pytest.mark.requirement("METHODS-8.4-2", "METHODS-8.4-4")
async def test_equal_candidates_are_chosen_by_name() -> None:
    async with keeping(desk("/b"), desk("/a"), methods=METHODS) as bench:
        result = await chosen(bench, "BOOK /b", "BOOK /a", criteria={"prefer": "cost"})
        assert (result["handler"], result["delivered"], result["output"]) == ("BOOK /a", True, {"at": "/a"})
        ordered = await chosen(bench, "BOOK /b", "BOOK /a", criteria={"prefer": "order"})
        assert (ordered["handler"], ordered["score"]) == ("BOOK /b", 1)


@pytest.mark.requirement("METHODS-8.4-7")
async def test_the_payload_and_attributes_decide() -> None:
    async with keeping(desk("/rooms"), desk("/cars"), methods=METHODS) as bench:
        rooms = {"method": "BOOK", "path": "/rooms", "when": {"topic": "room"}, "attributes": {"tier": 1}}
        cars = {"method": "BOOK", "path": "/cars", "when": {"nights": {"lte": 0}}, "attributes": {"tier": 3}}
        for payload, criteria, handler in (
            ({"topic": "room"}, {}, "BOOK /rooms"),
            ({"topic": "car", "nights": 0}, {"tier": {"gte": 2}}, "BOOK /cars"),
            ({"topic": "room", "nights": 0}, {"tier": {"gte": 2}}, "BOOK /cars"),
        ):
            reply = await route(bench, rooms, cars, payload=payload, criteria=criteria)
            assert reply.status == 200, reply.json
            assert reply.json["result"]["handler"] == handler
        refused = await route(bench, rooms, cars, "BOOK /nothing", payload={"topic": "car", "nights": 1, "x": 1})
        assert (refused.status, [one["reason"] for one in refused.error["candidates"]]) == (
            404,
            ["the payload does not meet its conditions"] * 2 + ["there is no such endpoint"],
        )


async def test_a_caller_that_names_no_candidates_has_the_endpoints_of_the_server() -> None:
    fetch = make_endpoint("FETCH", "/news", lambda _: {"n": 1}, capability="retrieval")
    async with keeping(desk("/a"), fetch, methods=METHODS) as bench:
        result = await chosen(bench, criteria={"capability": "retrieval"})
        assert (result["handler"], result["output"]) == ("FETCH /news", {"n": 1})


@pytest.mark.requirement("METHODS-8.4-7")
async def test_load_decides_between_handlers_that_fit() -> None:
    release, begun = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> Any:
        begun.set()
        await release.wait()
        return {}

    async with keeping(desk("/a", slow), desk("/b"), methods=METHODS) as bench:
        waiting = asyncio.create_task(chosen(bench, "BOOK /a"))
        await begun.wait()
        assert (await chosen(bench, "BOOK /a", "BOOK /b"))["handler"] == "BOOK /b"
        release.set()
        assert (await waiting)["handler"] == "BOOK /a"


@pytest.mark.requirement("METHODS-8.4-3", "METHODS-8.4-5")
async def test_declared_cost_decides_and_the_fallback_takes_the_rest() -> None:
    async with keeping(desk("/a"), desk("/b"), methods=METHODS) as bench:
        costs = [
            {"method": "BOOK", "path": path, "attributes": {"cost": cost}} for path, cost in (("/a", 5), ("/b", 2))
        ]
        assert (await chosen(bench, *costs, criteria={"prefer": "cost"}))["handler"] == "BOOK /b"
        assert (await route(bench, *costs, criteria={"max_cost": 1})).status == 404
        result = await chosen(bench, "BOOK /a", criteria={"capability": "none"}, fallback="BOOK /b")
        assert (result["handler"], "score" in result) == ("BOOK /b", False)
        assert (await route(bench, "BOOK /a", criteria={"capability": "none"})).status == 404


async def test_the_handler_is_called_with_the_authority_of_the_caller() -> None:
    seen: list[Any] = []

    def book(context: Context) -> dict[str, Any]:
        seen.append(context.principal.agent_id)
        return {}

    async with keeping(desk("/a", book), desk("/b", scopes=("rooms:book",)), methods=METHODS) as bench:
        assert (await chosen(bench, "BOOK /b", "BOOK /a", criteria={"prefer": "order"}))["handler"] == "BOOK /a"
        assert seen == [AGENT]


async def test_a_refusal_of_the_handler_is_told_and_an_unreachable_one_is_left_out() -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError

    names = ("timeout", "connection_error", "malformed_response", "error", "authentication_failed")
    upstream = ExternalService(url="https://127.0.0.1:9/", method="POST")
    gone = replace(desk("/gone", errors=tuple(f"upstream_{name}" for name in names)), handler=upstream)
    async with keeping(desk("/a", fail), desk("/b"), gone, methods=METHODS) as bench:
        failed = await chosen(bench, "BOOK /a")
        assert (failed["delivered"], failed["code"], failed["error"]["code"]) == (False, 500, "server-error")
        reached = await chosen(bench, "BOOK /gone", "BOOK /b", criteria={"prefer": "order"})
        assert (reached["handler"], "1 better" in reached["reason"]) == ("BOOK /b", True)
        assert (await route(bench, "BOOK /gone")).error["code"] == "handler-unavailable"


async def test_an_agent_receives_the_item_in_its_inbox() -> None:
    agents = (Agent(agent_id=AGENT, name="porter"), Agent(agent_id=OTHER, name="boots", trust_score=0.8))
    async with keeping(methods=METHODS, agents=agents) as bench:
        result = await chosen(bench, AGENT, OTHER, payload={"n": 1}, criteria={"trust_score": {"gte": 0.5}})
        [(record, _)] = await bench.store.read(ListMessages(OTHER))
        assert (result["handler"], result["message_id"]) == (OTHER, record.record_id)
        assert (record.content()["content"], record.content()["sender"]) == ({"n": 1}, AGENT)


@pytest.mark.requirement("METHODS-8.4-5")
async def test_an_item_is_routed_to_another_service_that_the_operator_lists() -> None:
    remote = build(make_endpoint("FETCH", "/news", lambda _: {"from": "elsewhere"}))
    server = AgtpServer(remote.dispatcher)
    [(_, port)] = await server.start("127.0.0.1", 0)
    try:
        address = f"agtp://127.0.0.1:{port}"
        elsewhere = {"service": address, "method": "FETCH", "path": "/news"}
        settings = DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))
        async with keeping(
            desk("/a"), methods=METHODS, document=ServerDocument(extension_tables={"delivery": settings})
        ) as bench:
            result = await chosen(bench, elsewhere)
            assert (result["handler"], result["output"]) == (f"{address} FETCH /news", {"from": "elsewhere"})
            gone = {**elsewhere, "service": "agtp://127.0.0.1:9"}
            assert (await chosen(bench, gone, fallback="BOOK /a"))["handler"] == "BOOK /a"
            assert (await route(bench, gone)).status == 503
        async with keeping(methods=METHODS) as bench:
            refused = await route(bench, elsewhere)
            assert (refused.status, refused.error["code"]) == (403, "address-not-listed")
    finally:
        await server.close()


async def test_a_repeated_request_hands_the_item_over_once() -> None:
    called: list[int] = []
    async with keeping(desk("/a", lambda _: called.append(1) or {"n": len(called)}), methods=METHODS) as bench:
        for candidate in ("BOOK /a", OTHER):
            body = {"payload": {}, "criteria": {}, "candidates": [candidate]}
            answers = [await bench.send("ROUTE", "/", body, idempotency_key=f"key-{len(candidate)}") for _ in range(2)]
            assert answers[0].json["result"] == answers[1].json["result"]
        assert called == [1]
        assert len(await bench.store.read(ListMessages(OTHER))) == 1


@pytest.mark.process
async def test_an_expression_filters_or_scores() -> None:
    async with keeping(desk("/a"), desk("/b"), methods=METHODS) as bench:
        expression = "candidate.path == '/a' ? 1 : payload.n"
        for n, handler in ((2, "BOOK /b"), (0, "BOOK /a")):
            result = await chosen(bench, "BOOK /a", "BOOK /b", payload={"n": n}, criteria={"expression": expression})
            assert result["handler"] == handler
        assert (await route(bench, "BOOK /a", criteria={"expression": "candidate.path == '/b'"})).status == 404
        for wrong in ("candidate.", "candidate.path", "candidate.nothing", "other"):
            refused = await route(bench, "BOOK /a", criteria={"expression": wrong})
            assert (refused.status, refused.error["code"]) == (422, "invalid-criteria")


@pytest.mark.requirement("METHODS-8.4-5")
@rows(
    "fields, status, code",
    ({"candidates": ["ROUTE /"]}, 422, "invalid-candidate"),
    ({"candidates": ["CHAIN /"]}, 422, "invalid-candidate"),
    ({"candidates": ["EXECUTE /"]}, 422, "invalid-candidate"),
    ({"fallback": "ROUTE /"}, 422, "invalid-candidate"),
    ({"fallback": "BOOK /nothing"}, 422, "invalid-candidate"),
    ({"candidates": [{"service": "agtp://10.0.0.1", "method": "FETCH"}]}, 403, "address-not-listed"),
    ({"candidates": [{"service": "https://a.example", "method": "FETCH"}]}, 422, "invalid-candidate"),
    ({"candidates": [{"method": "BOOK\n", "path": "/a"}]}, 422, "invalid-candidate"),
    ({"candidates": [{"agent": "x"}]}, 422, "invalid-candidate"),
    ({"candidates": [{"x": 1}]}, 422, "invalid-candidate"),
    ({"candidates": [{"method": "BOOK", "path": "/a", "when": {"x": {"near": 1}}}]}, 422, "invalid-candidate"),
    ({"candidates": ["BOOK /a"] * 10_000}, 422, "input-validation-failed"),
    ({"candidates": [{"method": "BOOK", "attributes": {"x": "x" * 70_000}}]}, 413, "candidates-too-large"),
    ({"criteria": {"x": "y" * 1_000_000}}, 422, "invalid-criteria"),
    ({"criteria": {"prefer": "luck"}}, 422, "invalid-criteria"),
    ({"criteria": {"max_cost": "much"}}, 422, "invalid-criteria"),
    ({"criteria": {"tier": {"near": 1}}}, 422, "invalid-criteria"),
    ({"criteria": {"expression": 7}}, 422, "invalid-criteria"),
    ({"candidates": ["BOOK /nothing"]}, 404, "no-handler"),
    ({"payload": [1]}, 404, "no-handler"),
)
async def test_what_cannot_be_routed_is_refused(fields: Any, status: int, code: str) -> None:
    called: list[Any] = []
    async with keeping(desk("/a", lambda _: called.append(1) or {}), methods=METHODS) as bench:
        reply = await bench.send("ROUTE", "/", {"payload": {}, "criteria": {}, "candidates": ["BOOK /a"], **fields})
        assert (reply.status, reply.error["code"]) == (status, code)
        assert not called


@rows(
    "written, kind, name",
    (AGENT, "agent", AGENT),
    ({"agent": AGENT, "attributes": {"topic": "bills"}}, "agent", AGENT),
    ("BOOK /room", "endpoint", "BOOK /room"),
    ({"method": "NOTIFY"}, "endpoint", "NOTIFY /"),
    ({"service": "agtp://b.example", "method": "BOOK", "path": "/room"}, "service", "agtp://b.example BOOK /room"),
)
def test_the_form_of_a_candidate_says_what_it_is(written: Any, kind: str, name: str) -> None:
    candidate = parse_candidate(written)
    assert isinstance(candidate, RouteCandidate)
    assert (candidate.kind, candidate.name) == (kind, name)


@rows("written", *("room", "/room", "agtp://b.example", ""))
def test_a_text_that_is_not_a_candidate_is_told_its_form(written: str) -> None:
    assert parse_candidate(written) == "is neither an Agent-ID nor METHOD /path"


@rows(
    "written",
    {"agent": AGENT, "method": "BOOK"},
    {"method": "BOOK", "attributes": 7},
    {"method": "BOOK", "when": []},
    {"method": "BOOK", "path": "/a b"},
    {"method": "BOOK", "path": "/a\r\nX: y"},
)
def test_what_is_not_a_candidate_has_a_fault(written: Any) -> None:
    assert isinstance(parse_candidate(written), str)


@given(
    st.text()
    | st.dictionaries(st.sampled_from(["agent", "service", "method", "path", "when", "x"]), st.none() | st.text())
)
def test_anything_is_a_candidate_or_a_fault(written: Any) -> None:
    assert isinstance(parse_candidate(written), RouteCandidate | str)


async def test_calls_of_about_the_same_size_are_preferred() -> None:
    endpoint = make_endpoint("FIND", "/rooms", lambda _: {}, properties={"text": {"type": "string"}})
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        costs = bench.bench.server.part("costs")
        for text in ["x"] * 10 + ["x" * 10_000] * 10:
            await bench.send("FIND", "/rooms", {"text": text})
        assert len(costs.find(("FIND", "/rooms"), 20)) == 10
        assert {one.size > 9_000 for one in costs.find(("FIND", "/rooms"), 10_000)} == {True}
        assert len(costs.find(("FIND", "/rooms"), 10_000_000)) == 20
        assert costs.find(("FIND", "/cellars"), 1) == []


async def test_refused_calls_are_not_counted_and_old_ones_are_forgotten() -> None:
    def find(given: dict[str, Any]) -> dict[str, Any]:
        return given

    endpoint = make_endpoint("FIND", "/rooms", find, properties={"n": {"type": "integer"}})
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        await bench.send("FIND", "/rooms", {"n": "x"}, agent=AGENT)
        assert bench.bench.server.part("costs").find(("FIND", "/rooms"), 1) == []
        for number in range(300):
            await bench.send("FIND", "/rooms", {"n": number})
        assert len(bench.bench.server.part("costs").find(("FIND", "/rooms"), 9)) == 256


async def test_few_endpoints_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MOST_KEYS", 2)
    endpoints = [make_endpoint("FIND", f"/rooms-{number}", lambda _: {}) for number in range(3)]
    async with keeping(*endpoints, methods=("QUOTE",)) as bench:
        for endpoint in endpoints:
            await bench.send("FIND", endpoint.path, {})
        costs = bench.bench.server.part("costs")
        assert [len(costs.find(endpoint.key, 1)) for endpoint in endpoints] == [0, 1, 1]


async def test_replayed_answers_are_not_counted() -> None:
    endpoint = make_endpoint("BOOK", "/room", lambda _: {}, impact="irreversible")
    async with keeping(endpoint, methods=("QUOTE",)) as bench:
        for _ in range(3):
            await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert len(bench.bench.server.part("costs").find(("BOOK", "/room"), 1)) == 1
