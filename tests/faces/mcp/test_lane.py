"""The fast lane: the same answers as the SDK's, the same gates, and what it leaves to the SDK."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.faces.mcp.differential import Pair, pair
from tests.faces.mcp.mutated_requests import CALLS, MUTATIONS, PLAIN, Case, random_case
from tests.faces.mcp.tools import LEGACY, MODERN, Rooms, connected_to, modern, on_http
from tests.service import AGENT, echo, make_endpoint

from bespeak import Policies
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.target import load_app
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.limits import Rate, RateLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.http.face import Guard, Origins
from bespeak.faces.mcp.http import TokenProgress
from bespeak.faces.mcp.sessions import PendingAnswer
from bespeak.protocol.exchange.messages import REPORT

READER = {"agent_id": AGENT, "authority_scope": "rooms:read"}
SENT = {name.replace("_", "-"): value for name, value in READER.items()}

# The same answers.
CASES: st.SearchStrategy[Case] = st.tuples(
    st.integers(0, PLAIN - 1),
    st.lists(st.tuples(st.sampled_from(sorted(MUTATIONS)), st.integers(0, 2**20)), max_size=3).map(tuple),
)
Break = Callable[[pytest.MonkeyPatch, Pair], None]


@pytest.fixture(scope="module", params=[{}, {"tokens": True}, {"stateless": True, "audited": True}], ids=str)
def services(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with pair(**request.param) as found:
        yield found


@given(case=CASES)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_lane_answers_as_the_sdk_does(services: Pair, case: Case) -> None:
    assert services.compare(case) is None


def test_the_lane_takes_calls_without_mutations(services: Pair) -> None:
    before = services.taken
    assert [services.compare((number, ())) for number in range(PLAIN)] == [None] * PLAIN
    left = ("book_room", "find_regions", "inspect_ledger", "find_capability", "unknown")
    others = [name for name, given in CALLS if name in left or given.get("name") in left]
    assert services.taken - before == PLAIN - 2 * len(others)


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def replacing(name: str, value: Any) -> Break:
    return lambda patch, _: patch.setattr(f"bespeak.faces.mcp.{name}", value)


def join_headers(patch: pytest.MonkeyPatch, services: Pair) -> None:
    lane = services.fast.mcp._lane
    patch.setattr(lane, "take", lambda _, headers, *rest: type(lane).take(lane, list(headers), headers, *rest))


def ask_nobody(patch: pytest.MonkeyPatch, services: Pair) -> None:
    lane = services.fast.mcp._lane
    patch.setattr(lane, "_plain", dict(lane._known))


def serve_every_host(patch: pytest.MonkeyPatch, services: Pair) -> None:
    patch.setattr(services.fast.mcp._lane, "_guard", Guard(origins=Origins()))


def challenge_nobody(patch: pytest.MonkeyPatch, services: Pair) -> None:
    guard = copy(services.fast.mcp._lane._guard)
    guard.challenges = False
    patch.setattr(services.fast.mcp._lane, "_guard", guard)


@rows(
    "tokens, break_lane, mutation",
    pytest.param(False, replacing("http.accepts_both", always(True)), "change_header", id="media types"),
    pytest.param(False, join_headers, "split_accept", id="repeated headers"),
    pytest.param(False, serve_every_host, "change_header", id="hosts and origins"),
    pytest.param(False, replacing("http._is_valid_envelope", always(True)), "change_envelope", id="envelopes"),
    pytest.param(False, replacing("http._are_valid_arguments", always(True)), "change_argument", id="arguments"),
    pytest.param(False, ask_nobody, "change_tool", id="questions"),
    pytest.param(False, replacing("http.passed", always({})), "change_tool", id="credentials"),
    pytest.param(True, challenge_nobody, "change_tool", id="challenges"),
    pytest.param(False, replacing("http.IDEMPOTENCY_KEY", "x"), "change_envelope", id="idempotency keys"),
    pytest.param(False, replacing("http.FastLane._write", always(b'{"content": []}')), "change_id", id="results"),
)
def test_broken_lane_is_found(tokens: bool, break_lane: Break, mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(1)
    with pair(tokens=tokens) as services:
        break_lane(monkeypatch, services)
        assert any(services.compare(random_case(choose, [mutation])) is not None for _ in range(1000))


# What is left to the SDK, and what is not.

pytestmark = pytest.mark.anyio


class Counting:
    """A lane that notes which requests for tools it takes."""

    def __init__(self, lane: Any) -> None:
        self._lane = lane
        self.taken: list[bool] = []

    def take(self, *request: Any) -> Any:
        found = self._lane.take(*request)
        if b'"tools/' in request[2]:
            self.taken.append(found is not None)
        return found


@asynccontextmanager
async def counted(**options: Any) -> AsyncIterator[tuple[str, Counting, Keeper]]:
    target = load_app(Rooms().app, Path())
    if "rates" in options:
        target = replace(target, service=replace(target.service, rate_limits=options.pop("rates")))
    async with on_http(target, **options) as (url, keeper, mcp):
        await mcp.tools.refresh()
        mcp._lane = counting = Counting(mcp._lane)  # type: ignore[assignment]
        yield url, counting, keeper


@pytest.mark.parametrize(("era", "stateless"), [(MODERN, False), (LEGACY, False), (LEGACY, True)])
async def test_calls_and_lists_of_the_sdks_client_take_the_lane(era: str, stateless: bool) -> None:
    async with counted(stateless=stateless) as (url, lane, _), connected_to(url, era, **READER) as client:
        if era == LEGACY and not stateless:
            await client.call_tool("query_rooms", {})  # the SDK answers the first request of a session
        lane.taken.clear()
        found = await client.call_tool("query_rooms", {"beds": 2})
        listed = await client.list_tools(cache_mode="refresh")
    assert found.structured_content == {"rooms": ["12"]}
    assert [tool.name for tool in listed.tools][:2] == ["book_rooms", "list_floors"]
    assert listed.ttl_ms == (60_000 if era == MODERN else 0)
    # A client lists the tools after its first call.
    assert lane.taken == [True] * (2 if era == LEGACY and not stateless else 3)


async def test_middleware_is_passed_before_the_lane_and_rates_hold_in_it() -> None:
    document = ServerDocument(http=HttpSettings(cors=("https://app.example",)))
    headers, body = modern("tools/call", name="query_rooms", arguments={})
    sent = {**headers, "Agent-ID": AGENT, "Authority-Scope": "rooms:read", "Origin": "https://app.example"}
    async with counted(document=document) as (url, lane, _), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(url, json=body, headers=sent)
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.json()["result"]["structuredContent"] == {"rooms": ["12", "14"]}
    assert lane.taken == [True]
    limits = RateLimits(agent=Rate(1, "day", 2))
    answers = []
    async with counted(rates=limits) as (url, lane, _), httpx.AsyncClient(trust_env=False) as client:
        for method, params in [("tools/list", {}), ("tools/call", {"name": "list_floors"})] * 2:
            headers, body = modern(method, **params)
            answers.append(await client.post(url, json=body, headers={**headers, **SENT}))
    assert [answer.status_code for answer in answers] == [200, 200, 429, 200]
    assert int(answers[2].headers["retry-after"]) > 0
    assert "rate-limited" in answers[3].json()["result"]["content"][0]["text"]
    assert lane.taken == [True] * 4


async def test_a_tool_that_is_added_is_listed_and_called() -> None:
    halls = make_endpoint("FIND", "/halls", echo)
    added = replace(halls, handler=RegisteredFunction(function="tests.service.echo", target=echo))
    async with counted() as (url, lane, keeper), connected_to(url, MODERN, **READER) as client:
        before = await client.list_tools()
        await keeper.dispatcher.server.add_endpoint(added)
        lane.taken.clear()
        after = await client.list_tools(cache_mode="refresh")
        called = [await client.call_tool("find_halls", {}) for _ in range(2)]
    assert {tool.name for tool in after.tools} - {tool.name for tool in before.tools} == {"find_halls"}
    assert [result.is_error for result in called] == [False, False]
    assert lane.taken == [False, True, True]  # the SDK's way notices the change


async def test_tools_are_not_listed_to_strangers_where_discovery_is_not_public() -> None:
    headers, body = modern("tools/list")
    target = load_app(Rooms(policies=Policies(anonymous_discovery=False)).app, Path())
    async with on_http(target) as (url, _, mcp), httpx.AsyncClient(trust_env=False) as client:
        await mcp.tools.refresh()
        stranger = await client.post(url, json=body, headers=headers)
        known = await client.post(url, json=body, headers={**headers, **SENT})
    assert stranger.status_code == 401
    assert "tells only identified agents" in stranger.json()["error"]["message"]
    assert known.json()["result"]["tools"]


async def test_a_client_of_an_earlier_revision_cancels_a_call_in_the_lane() -> None:
    rooms = Rooms()
    async with on_http(load_app(rooms.app, Path())) as (url, _, mcp), connected_to(url, LEGACY, **READER) as client:
        await client.call_tool("query_rooms", {})
        mcp._lane = lane = Counting(mcp._lane)  # type: ignore[assignment]
        calling = asyncio.create_task(client.call_tool("watch_rooms", {}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        calling.cancel()  # the client then sends notifications/cancelled
        await asyncio.wait_for(rooms.cancelled.wait(), 20)
    assert lane.taken[0]


async def test_fastmcps_client_takes_the_lane_although_it_wants_progress_and_logs() -> None:
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport

    async with counted() as (url, lane, _), Client(StreamableHttpTransport(url, headers=SENT)) as client:
        lane.taken.clear()
        found = await client.call_tool("query_rooms", {"beds": 2})
    assert found.structured_content == {"rooms": ["12"]}
    assert all(lane.taken)


async def told(token: int | str, *reports: tuple[Any, ...]) -> list[Message]:
    """Let a call report, then answer; return what its client is sent."""
    progress, sent = TokenProgress(token), list[Message]()

    def report() -> None:
        take = REPORT.get()
        assert take is not None
        for one in reports:
            take(*one)

    async def answer() -> HttpResponse:
        async with progress:
            await asyncio.sleep(0)
        return HttpResponse(200, [], b"{}")

    async def send(message: Message) -> None:
        sent.append(message)

    progress.run(report)
    assert REPORT.get() is None
    assert progress.is_told == bool(reports)
    waiting = PendingAnswer(answer(), [])
    progress.follow(waiting)
    await waiting({}, asyncio.Event().wait, send)  # type: ignore[arg-type] # the peer stays
    return sent


async def test_reports_are_notifications_under_the_token_of_the_client_with_what_they_say() -> None:
    start, first, last = await told("t", (1, 4, "one"))
    assert start["type"] == "http.response.start"
    notification = json.loads(first["body"].partition(b"data: ")[2])
    assert notification["method"] == "notifications/progress"
    assert notification["params"] == {"progressToken": "t", "progress": 1, "total": 4, "message": "one"}
    assert last["body"] == b"event: message\r\ndata: {}\r\n\r\n"
    notification = (await told(0, (0.5, None, None)))[1]["body"].partition(b"data: ")[2]
    assert json.loads(notification)["params"] == {"progressToken": 0, "progress": 0.5}
    assert [message.get("body") for message in await told(1)] == [None, b"{}"]
