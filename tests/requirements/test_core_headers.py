"""Headers of the core protocol (core 2, 8): their meaning, those of every answer, and those that do not exist."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.test_settlement import absent
from tests.service import AGENT, Bench, Reply, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.limits import Rate, RateLimits, read_cost
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.limits import DEFAULT_TIMEOUTS
from bespeak.protocol.exchange.messages import Context
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.identity.key_text import generate_key
from bespeak.state.store.commands.sessions import BindSession, SuspendSession
from bespeak.state.store.settings import SessionSettings

SUSPENDED, REVOKED, STRANGER, OTHER = ("b" * 64, "c" * 64, "d" * 64, "e" * 64)
SESSION = secrets.token_hex(16)
AGENTS = (
    Agent(agent_id=AGENT, name="desk", scopes=("booking:room", "menu:read"), principal_id="acme"),
    Agent(agent_id=OTHER, name="kitchen", scopes=("menu:read",)),
    Agent(agent_id=SUSPENDED, name="asleep", status="suspended"),
    Agent(agent_id=REVOKED, name="gone", status="revoked"),
)
BOOKING = make_endpoint(
    "BOOK", "/room", echo, properties={"room": {"type": "string"}}, scopes=("booking:room",), impact="irreversible"
)
PRICED = replace(make_endpoint("QUERY", "/prices", echo), cost=read_cost({"tokens": 500})[0])
RETIRED = {"AGTP-Version", "AGTP-Method", "AGTP-Status", "Principal-ID", "Server-Agent-ID"}


def names(reply: Reply) -> set[str]:
    return {name for name, _ in (*reply.response.block.pairs, *reply.response.headers)}


async def _refusals(bench: StatefulBench) -> list[tuple[int, Reply]]:
    """Return one answer of each kind, with its expected status."""
    echoed = {"task_id": "t-1"}
    store = bench.store
    await store.do(BindSession(SESSION, AGENT, "", 600.0))
    await store.do(SuspendSession(SESSION, AGENT, "", "susp-1", "hash", time.time() - 1))
    keyed = {**echoed, "idempotency_key": "k-1"}
    return [
        (200, await bench.send("BOOK", "/room", {"room": "1"}, **keyed)),
        (200, await bench.send("BOOK", "/room", {"room": "1"}, **keyed)),
        (422, await bench.send("BOOK", "/room", {"room": "2"}, **keyed)),
        (262, await bench.send("BOOK", "/room", {}, authority_scope="payments:purchase", **echoed)),
        (400, await bench.send("BOOK", "/room", {}, authority_scope="booking", **echoed)),
        (400, await bench.send("BOOK", "/room", {}, session_id="weak", **echoed)),
        (401, await bench.send("BOOK", "/room", {}, agent=STRANGER, **echoed)),
        (404, await bench.send("BOOK", "/nowhere", {}, **echoed)),
        (405, await bench.send("BOOK", "/prices", {}, **echoed)),
        (408, await bench.send("BOOK", "/room", {}, session_id=SESSION, **echoed)),
        (410, await bench.send("BOOK", "/room", {}, agent=REVOKED, **echoed)),
        (422, await bench.send("BOOK", "/room", {"bed": 1}, **echoed)),
        (455, await bench.send("BOOK", "/room", {}, authority_scope="menu:read", **echoed)),
        (456, await bench.send("QUERY", "/prices", {}, budget_limit="tokens=1", **echoed)),
        (459, await bench.send("FROB", "/room", {}, **echoed)),
        (460, await bench.send("BOOK", "/book", {}, **echoed)),
        (463, await bench.send("PROPOSE", "/", {"name": "AUDIT"}, **echoed)),
        (503, await bench.send("BOOK", "/room", {}, agent=SUSPENDED, **echoed)),
        (551, await bench.send("BOOK", "/room", {}, delegation_chain="x.y.z", **echoed)),
    ]


@pytest.mark.requirement("CORE-2.3-15", "CORE-2.4-1", "CORE-2.4-2", "CORE-2.4-7", "CORE-2.4-11")
@pytest.mark.anyio
@pytest.mark.parametrize("audited", [False, True])
async def test_every_kind_of_answer_names_the_server_and_its_task_and_no_retired_header(audited: bool) -> None:
    store = absent()
    document = ServerDocument(audit=AuditSettings(records="all" if audited else "off"))
    keys = (generate_key(),) if audited else ()
    async with keeping(
        BOOKING, PRICED, store=store, document=document, keys=keys, agents=AGENTS, require_known_agents=True
    ) as bench:
        replies = await _refusals(bench)
        store.away = True
        replies.append((503, await bench.send("BOOK", "/room", {}, idempotency_key="k-2", task_id="t-1")))
    assert [reply.status for _, reply in replies] == [status for status, _ in replies]
    for _, reply in replies:
        assert (reply.header("Server-ID"), reply.header("Task-ID")) == ("test.example", "t-1")
        assert not names(reply) & RETIRED
        assert (reply.header("Content-Type"), reply.header("AGTP-API-Version")) == ("application/vnd.agtp+json", "1.0")


@pytest.mark.requirement("CORE-2.4-1", "CORE-2.4-2")
def test_a_rate_limited_response_has_the_server_id() -> None:
    bench = build(BOOKING, rate_limits=RateLimits(address=Rate(1, "min", 1)))
    bench.send("BOOK", "/room")
    refused = bench.send("BOOK", "/room", task_id="t-1")
    assert (refused.status, refused.header("Server-ID"), refused.header("Task-ID")) == (429, "test.example", "t-1")


@pytest.mark.requirement("CORE-2.3-3")
def test_agent_id_names_the_caller_and_never_the_target() -> None:
    def who(context: Context) -> dict[str, Any]:
        return {"caller": context.agent_id}

    bench = build(make_endpoint("FETCH", "/caller", who), agents=AGENTS)
    assert bench.send("FETCH", "/caller", agent_id=OTHER).json == {"caller": OTHER}
    assert bench.send("DESCRIBE", "/", {"agent_id": AGENT}, agent_id=OTHER).json["agent_id"] == AGENT
    assert bench.send("DESCRIBE", "/agents/desk", agent_id=OTHER).json["agent_id"] == AGENT


RESERVED = {
    "priority": "critical",
    "ttl": "1",
    "budget_limit": "tokens=5000, compute-seconds=120",
    "agtp_zone_id": "zone:internal",
    "content_schema": "https://schemas.example/x",
    "telemetry_export": "inline",
}


@pytest.mark.requirement("CORE-2.3-14")
def test_headers_reserved_for_later_are_neither_needed_nor_in_the_way() -> None:
    bench = build(BOOKING, agents=AGENTS)
    plain = bench.send("BOOK", "/room", {"room": "1"}, agent_id=AGENT)
    assert plain.status == 200
    for name, value in RESERVED.items():
        assert bench.send("BOOK", "/room", {"room": "1"}, agent_id=AGENT, **{name: value}).json == plain.json


@pytest.mark.requirement("CORE-2.3-15", "CORE-2.3-16")
@pytest.mark.parametrize(
    "header",
    [
        {"principal_id": "somebody-else"},
        {"server_agent_id": STRANGER},
        {"agtp_method": "CANCEL"},
        {"agtp_status": "200"},
        {"x_agent_id": OTHER},
        {"x_authority_scope": "booking:*"},
    ],
)
def test_retired_and_private_headers_say_nothing(header: dict[str, str]) -> None:
    def who(context: Context) -> dict[str, Any]:
        principal = context.principal
        return {"agent": principal.agent_id, "for": principal.principal_id, "scopes": list(principal.scopes)}

    bench = build(make_endpoint("FETCH", "/caller", who), agents=AGENTS)
    expected = {"agent": AGENT, "for": "acme", "scopes": ["booking:room", "menu:read"]}
    assert bench.send("FETCH", "/caller", agent_id=AGENT, **header).json == expected
    anonymous = bench.send("FETCH", "/caller", **header)
    assert anonymous.json == {"agent": None, "for": None, "scopes": []}


@pytest.mark.requirement("CORE-2.3-8")
@pytest.mark.anyio
async def test_a_session_id_reaches_the_handler_unchanged() -> None:
    def tell(context: Context) -> dict[str, Any]:
        return {"session": context.session_id}

    async with keeping(make_endpoint("FETCH", "/session", tell)) as bench:
        assert (await bench.send("FETCH", "/session", session_id=SESSION)).json == {"session": SESSION}
        assert (await bench.send("FETCH", "/session")).json == {"session": None}


@pytest.mark.requirement("CORE-8-3")
def test_connections_and_sessions_may_rest_for_a_minute_and_more() -> None:
    assert DEFAULT_TIMEOUTS.idle >= 60
    assert SessionSettings().idle >= 60


@pytest.mark.requirement("CORE-2.4-5", "CORE-2.4-6")
def test_verbs_beyond_the_floor_are_among_the_supported_methods() -> None:
    bench: Bench = build(make_endpoint("QUOTE", "/room", echo), BOOKING)
    told = (bench.send("DISCOVER", "/").header("Supported-Methods") or "").split(", ")
    assert {"QUOTE", "BOOK", "INSPECT", "REVOKE", "SUSPEND"} <= set(told)


@pytest.mark.requirement("CORE-12-2")
@pytest.mark.anyio
async def test_a_request_id_is_echoed_on_answers_and_replays() -> None:
    async with keeping(BOOKING, agents=AGENTS) as bench:
        for number in ("r-1", "r-2"):
            reply = await bench.send("BOOK", "/room", {"room": "1"}, idempotency_key="k", request_id=number)
            assert (reply.status, reply.header("Request-ID")) == (200, number)
