"""Headers (core 2, 8) and authority (core 6, 7, 10) of the core protocol."""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.cases import rows
from tests.runtime.test_settlement import absent
from tests.service import AGENT, Bench, Reply, build, echo, make_endpoint
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys
from tests.stateful import StatefulBench, keeping

from bespeak import Refusal
from bespeak.contract.agent import Agent
from bespeak.contract.limits import Rate, RateLimits, read_cost
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.limits import DEFAULT_TIMEOUTS
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.messages import Connection, Context, Request
from bespeak.runtime.exchange import ACCESS_LOGGER
from bespeak.runtime.rate import Rates
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.jws import generate_key
from bespeak.state.identity.settings import AuthSettings, SignedSettings, TokenSettings
from bespeak.state.identity.signed_request import sign_request
from bespeak.state.store.commands.audit import ScanAudit
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
@rows(
    "header",
    {"principal_id": "somebody-else"},
    {"server_agent_id": STRANGER},
    {"agtp_method": "CANCEL"},
    {"agtp_status": "200"},
    {"x_agent_id": OTHER},
    {"x_authority_scope": "booking:*"},
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


SERVER = "test.example"
ISSUER = new_key()
KEY = Ed25519PrivateKey.generate()
PUBLIC = {"kty": "OKP", "crv": "Ed25519", "x": encode64(KEY.public_key().public_bytes_raw()).decode()}
DESK = Agent(agent_id=AGENT, name="desk", scopes=("booking:*",), public_key=PUBLIC, principal_id="acme")


def bearer(**changes: Any) -> str:
    now = int(time.time())
    given = claims(agent_id=AGENT, aud=SERVER, iat=now, exp=now + 600, scope=None)
    return "Bearer " + sign(ISSUER, {**given, **changes}, kid="k")


@pytest.mark.requirement("CORE-2.3-7", "CORE-10.1-7")
def test_of_several_faults_the_first_in_gate_order_is_reported(tmp_path: Path) -> None:
    calls: list[int] = []
    priced = make_endpoint(
        "BOOK",
        "/suite",
        lambda context: calls.append(1) or {},
        properties={"room": {"type": "string"}},
        scopes=("booking:suite",),
    )
    limits = RateLimits(address=Rate(1, "min", 1))
    bench = build(replace(priced, cost=read_cost({"USD": "2.00"})[0]), agents=(DESK,), rate_limits=limits)
    now = [0]
    server = bench.server
    server.rates = Rates(limits, clock=lambda: now[0])
    keys = write_keys(tmp_path / "keys.json", public(ISSUER, kid="k"))
    settings = AuthSettings(modes=("token",), token=TokenSettings(keys=keys))
    server.principals.authenticator = Authenticator(settings, SERVER, server.principals.key_of)
    wrong = {
        "method": "FROB",
        "path": "/book",
        "authority_scope": "booking:room",
        "budget_limit": "USD=1.00",
        "authorization": bearer(exp=1),
        "body": {"bed": 1},
    }
    told = []
    for repaired in (
        {},
        {"authorization": bearer()},
        {"method": "BOOK"},
        {"path": "/nowhere"},
        {"path": "/suite"},
        {"authority_scope": "booking:suite"},
        {"budget_limit": "USD=2.00"},
        {"body": {"room": "1"}},
    ):
        now[0] += 60_000_000_000
        wrong |= repaired
        given = dict(wrong)
        method, path, body = given.pop("method"), given.pop("path"), given.pop("body")
        told.append(bench.send(method, path, body, **given).status)
    told.append(bench.send("FROB", "/book", authorization="Bearer x").status)
    assert told == [401, 459, 460, 404, 455, 456, 422, 200, 429]
    assert calls == [1]


@pytest.mark.requirement("CORE-10.1-8")
@pytest.mark.anyio
async def test_a_signature_is_good_for_one_request(tmp_path: Path) -> None:
    document = ServerDocument(auth=AuthSettings(modes=("signed",), signed=SignedSettings(max_age=60)))
    async with keeping(BOOKING, document=document, agents=(DESK,)) as bench:
        headers = {"agent-id": AGENT}
        signature = sign_request("BOOK", "/room", headers, b"{}", key=KEY, server_id=SERVER, now=time.time())
        assert (await bench.send("BOOK", "/room", b"{}", agent_signature=signature)).status == 200
        again = await bench.send("BOOK", "/room", b"{}", agent_signature=signature)
        assert (again.status, again.error["code"]) == (401, "signature-replayed")
        assert signature not in str(again.json)


@pytest.mark.requirement("CORE-6.1-3", "CORE-6.1-12", "CORE-6.1-13", "CORE-10.1-6")
@pytest.mark.anyio
async def test_every_status_of_agtp_is_logged_with_its_agent_and_as_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    session = secrets.token_hex(16)
    requests: list[tuple[int, str, str, dict[str, str]]] = [
        (262, "BOOK", "/room", {"authority_scope": "payments:purchase"}),
        (408, "BOOK", "/room", {"session_id": session}),
        (455, "BOOK", "/room", {"authority_scope": "booking:table"}),
        (456, "QUERY", "/prices", {"budget_limit": "tokens=1"}),
        (459, "FROB", "/room", {}),
        (460, "BOOK", "/book", {}),
        (463, "PROPOSE", "/", {}),
        (551, "BOOK", "/room", {"delegation_chain": "x.y.z"}),
    ]
    async with keeping(BOOKING, PRICED, agents=(DESK,)) as bench:
        await bench.store.do(BindSession(session, AGENT, "", 600.0))
        await bench.store.do(SuspendSession(session, AGENT, "", "susp-1", "hash", time.time() - 1))
        for expected, method, path, headers in requests:
            caplog.clear()
            with caplog.at_level(logging.INFO):
                reply = await bench.send(method, path, {"name": "AUDIT"} if method == "PROPOSE" else {}, **headers)
            assert reply.status == expected
            [line] = [entry for entry in caplog.records if str(expected) in entry.getMessage()]
            # Core 6.1 and 10.1: these must be logged, whatever else an operator leaves out.
            assert line.levelno == (logging.WARNING if expected in (262, 408, 455, 456, 551) else logging.INFO)
            assert AGENT in line.getMessage()


@pytest.mark.requirement("CORE-10.1-13", "CORE-12-8")
@pytest.mark.anyio
async def test_no_secret_or_handler_detail_is_sent_or_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(context: Context) -> None:
        raise RuntimeError("hunter2 at /srv/private/rooms.py")

    def declared(context: Context) -> None:
        raise Refusal("taken", "Taken.")

    server_key = generate_key()
    keys = write_keys(tmp_path / "issuer-keys.json", public(ISSUER, kid="k"))
    document = ServerDocument(
        audit=AuditSettings(records="all"),
        auth=AuthSettings(modes=("token", "signed"), token=TokenSettings(keys=keys), signed=SignedSettings(max_age=60)),
    )
    broken = make_endpoint("BOOK", "/broken", fail, impact="irreversible")
    taken = make_endpoint("BOOK", "/taken", declared, errors=("taken",), impact="irreversible")
    session, key = secrets.token_hex(16), secrets.token_hex(16)
    secret = bearer()
    caplog.set_level(logging.DEBUG)
    async with keeping(broken, taken, BOOKING, document=document, keys=(server_key,), agents=(DESK,)) as bench:
        given = {"authorization": secret, "session_id": session, "idempotency_key": key}
        replies = [
            await bench.send(method, path, body, agent=agent, **headers)
            for method, path, body, agent, headers in (
                ("BOOK", "/taken", {}, None, given),
                ("BOOK", "/room", {}, "f" * 64, given),
                ("BOOK", "/room", {}, None, {**given, "authority_scope": "payments:buy"}),
                ("BOOK", "/room", {"bed": 1}, None, given),
                ("BOOK", "/room", {}, None, {"authorization": secret[:-9] + "AAAAAAAAA"}),
                ("BOOK", "/room", {}, AGENT, {"agent_signature": "v=1;nonce=sekrit;sig=sekrit"}),
                ("DISCOVER", "/", {}, None, {}),
                ("DISCOVER", "/", {"target": "manifest"}, None, {"authorization": secret}),
                ("DESCRIBE", "/agents/desk", None, None, {"authorization": secret}),
            )
        ]
        failed = await bench.send("BOOK", "/broken", {}, agent=None, **given)
        records = " ".join(str(payload_of(row[5])) for row in await bench.store.read(ScanAudit()))
    assert failed.status == 500
    text = " ".join(f"{reply.json} {reply.response.headers}" for reply in [*replies, failed])
    token = secret.removeprefix("Bearer ")
    private = str(server_key.as_dict(private=True)["d"])
    assert "/taken" in records
    for unsaid in (token, token.rsplit(".", 1)[1], key, private, "sekrit"):
        assert unsaid not in text
        assert unsaid not in caplog.text
        assert unsaid not in records
    assert session not in text + caplog.text
    for unsaid in ("hunter2", "/srv/private", "tests.function", "issuer-keys.json", "Traceback"):
        assert unsaid not in text


@pytest.mark.requirement("CORE-6.3-1")
def test_numbers_of_older_drafts_are_not_in_use() -> None:
    assert not {451, 452, 453} & status.REASONS.keys()
    assert (status.SCOPE_VIOLATION, status.BUDGET_EXCEEDED, status.ZONE_VIOLATION) == (455, 456, 457)
    assert (status.COUNTERPARTY_UNVERIFIED, status.METHOD_VIOLATION, status.ENDPOINT_VIOLATION) == (458, 459, 460)
    bench = build(BOOKING)
    assert [bench.send(*request).status for request in (("FROB", "/room"), ("BOOK", "/book"))] == [459, 460]


@pytest.mark.requirement("CORE-7.1-4")
def test_every_lookup_of_an_agent_returns_its_canonical_id() -> None:
    bench = build(make_endpoint("FETCH", "/menu", echo), agents=(DESK,))
    bench.connection = Connection()
    by_name = bench.send("DESCRIBE", "/agents/desk").json
    by_id = bench.send("DESCRIBE", "/", {"agent_id": AGENT}).json
    assert by_name["agent_id"] == by_id["agent_id"] == AGENT
    assert bench.send("FETCH", "/menu", agent_id="desk").error["code"] == "invalid-canonical-id"


@pytest.mark.requirement("CORE-10.1-3")
def test_agent_and_principal_of_every_request_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, ACCESS_LOGGER):
        log = build(BOOKING, agents=(DESK,)).dispatcher
        for method, path in (("BOOK", "/room"), ("BOOK", "/nowhere"), ("FROB", "/room"), ("DISCOVER", "/methods")):
            log(Request(method, path, "", {"agent-id": AGENT}, b"{}", Connection()))
    told = [vars(record)["particulars"] for record in caplog.records if record.name == ACCESS_LOGGER]
    assert [(one["status"], one["agent_id"], one["principal_id"]) for one in told] == [
        (number, AGENT, "acme") for number in (200, 404, 459, 200)
    ]


@pytest.mark.requirement("CORE-10.1-3")
@pytest.mark.anyio
async def test_agent_and_principal_of_every_request_are_on_record() -> None:
    document = ServerDocument(audit=AuditSettings(records="all", discovery=True))
    async with keeping(BOOKING, document=document, agents=(DESK,)) as bench:
        for method, path in (("BOOK", "/room"), ("BOOK", "/nowhere"), ("FROB", "/room"), ("DISCOVER", "/methods")):
            await bench.send(method, path, {})
        found = [payload_of(row[5]) or {} for row in await bench.store.read(ScanAudit())]
    assert [(one["status"], one["agent_id"], one["principal_id"]) for one in found] == [
        (number, AGENT, "acme") for number in (200, 404, 459, 200)
    ]
