"""The audit records of a server, and the trail across restarts."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak import Refusal
from bespeak.contract.procedure import Procedure
from bespeak.contract.standard.methods import choose_methods
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import StoreUnavailableError
from bespeak.protocol.exchange.header_values import decode64
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.state.audit.record import parse_compact
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.audit.trail import StoreTrail
from bespeak.state.audit.verification import Expectation, Verification
from bespeak.state.identity.jws import generate_key
from bespeak.state.identity.key_files import trusted
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

KEY = generate_key()
AUDITED = ServerDocument(audit=AuditSettings(records="all"))


def book(room: str) -> dict[str, Any]:
    if room == "taken":
        raise Refusal("room_unavailable", "Taken.")
    return {"booked": room}


BOOKING = make_endpoint(
    "BOOK",
    "/room",
    book,
    properties={"room": {"type": "string"}},
    required=("room",),
    errors=("room_unavailable",),
    impact="irreversible",
)


async def records(bench: StatefulBench) -> list[dict[str, Any]]:
    rows = await bench.store.read(ScanAudit())
    found = []
    for row in rows:
        assert parse_compact(row[5]) is not None
        found.append(msgspec.json.decode(decode64(row[5].split(".")[1]) or b""))
    return found


@pytest.mark.requirement("CORE-2.4-3", "CORE-10.3-2", "CORE-12-1", "CORE-2.4-4")
async def test_an_answer_names_its_record_and_carries_it_signed_if_there_is_a_key() -> None:
    async with keeping(BOOKING, document=AUDITED, keys=(KEY,)) as bench:
        reply = await bench.send("BOOK", "/room", {"room": "12"}, task_id="t-1")
        assert reply.status == 200
        record = reply.header("Attribution-Record") or ""
        rows = await bench.store.read(ScanAudit())
        assert [row[4:] for row in rows] == [(reply.header("Audit-ID"), record)]
        payload = (await records(bench))[0]
        assert (payload["agent_id"], payload["task_id"]) == (AGENT, "t-1")
        assert (payload["method"], payload["path"], payload["status"]) == ("BOOK", "/room", 200)
        assert (payload["server_id"], payload["response_id"]) == ("test.example", reply.header("Response-ID"))
    async with keeping(BOOKING, document=AUDITED) as bench:
        reply = await bench.send("BOOK", "/room", {"room": "12"})
        assert reply.header("Attribution-Record") is None
        assert len(reply.header("Audit-ID") or "") == 64


async def test_refusals_and_replays_are_on_record_and_arguments_only_where_named() -> None:
    async with keeping(BOOKING, document=AUDITED) as bench:
        await bench.send("BOOK", "/room", {"room": "taken"}, idempotency_key="k")
        await bench.send("BOOK", "/room", {"room": "taken"}, idempotency_key="k")
        await bench.send("BOOK", "/room", {"wrong": 1})
        await bench.send("FROBNICATE", "/room", {})
        found = await records(bench)
        assert [record["status"] for record in found] == [422, 422, 422, 459]
        assert [record.get("replayed", False) for record in found] == [False, True, False, False]
        await bench.send("BOOK", "/room", {"room": "secret-room"})
        rows = await bench.store.read(ScanAudit())
        assert b"secret-room" not in (decode64(rows[0][5].split(".")[1]) or b"")
    named = ServerDocument(audit=AuditSettings(records="all", fields={("BOOK", "/room"): ("room",)}))
    async with keeping(BOOKING, document=named) as bench:
        await bench.send("BOOK", "/room", {"room": "12"})
        assert (await records(bench))[0]["extra"] == {"input": {"room": "12"}}


async def faults(bench: StatefulBench, sign: str) -> list[str]:
    verification = Verification(StoreTrail(bench.store), trusted([KEY]), Expectation(sign, frozenset({"test.example"})))
    return [fault.kind async for fault in verification.faults()]


async def test_signing_is_switched_on_and_off_and_on_with_a_trail_that_verifies(tmp_path: Path) -> None:
    place = str(tmp_path / "bespeak.db")
    for sign, keys in ((None, ()), ("each", (KEY,)), ("none", (KEY,)), ("none", (KEY,)), ("checkpoints", (KEY,))):
        document = ServerDocument(audit=AuditSettings(records="all", sign=sign))
        async with keeping(BOOKING, document=document, keys=keys, store=open_store(place, role="sole")) as bench:
            reply = await bench.send("BOOK", "/room", {"room": "1"})
            assert (reply.header("Attribution-Record") is not None) == (sign == "each")
            if keys:
                assert await faults(bench, sign or "each") == []


async def test_removal_of_a_key_without_a_record_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = str(tmp_path / "bespeak.db")
    for keys in ((KEY,), ()):
        caplog.clear()
        async with keeping(BOOKING, document=AUDITED, keys=keys, store=open_store(place, role="sole")) as bench:
            await bench.send("BOOK", "/room", {"room": "1"})
            assert ('write sign = "none" in [audit]' in caplog.text) == (not keys)
            assert await faults(bench, "none") == ([] if keys else ["unsigned"])


async def test_discovery_and_strangers_do_not_fill_the_trail() -> None:
    async with keeping(BOOKING, document=AUDITED) as bench:
        await bench.send("DISCOVER", "/", agent=None)
        await bench.send("DISCOVER", "/methods")
        await bench.send("FROBNICATE", "/x", agent=None)
        assert await records(bench) == []
    everything = ServerDocument(audit=AuditSettings(records="all", discovery=True))
    async with keeping(BOOKING, document=everything) as bench:
        await bench.send("DISCOVER", "/methods")
        assert [record["method"] for record in await records(bench)] == ["DISCOVER"]


@pytest.mark.requirement("CORE-12-5")
async def test_a_chain_continues_after_a_restart_and_checkpoints_cover_both_parts(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    for _ in range(2):
        async with keeping(BOOKING, document=AUDITED, keys=(KEY,), store=open_store(place, role="sole")) as bench:
            await bench.send("BOOK", "/room", {"room": "12"})
            found = await records(bench)
            ids = [row[4] for row in await bench.store.read(ScanAudit())]
    assert [record["previous_audit_id"] for record in found] == ["0" * 64, ids[0]]
    assert found[0]["stream"] != found[1]["stream"]
    store = open_store(place)
    await store.start()
    verification = Verification(StoreTrail(store), trusted([KEY]))
    assert [fault async for fault in verification.faults()] == []
    assert (verification.tally.records, verification.tally.streams, verification.tally.behind) == (2, 2, 0)
    assert verification.tally.checkpoints >= 2
    await store.close()


# What the drafts want on record, with nothing configured but a store that lasts.

MENU = make_endpoint("FETCH", "/menu", echo)
DINNER = make_endpoint("BOOK", "/table", echo, impact="reversible")
DEED = make_endpoint("PAY", "/account", echo, impact="irreversible", scopes=("account:pay",))
SECRET = make_endpoint("FETCH", "/salaries", echo, scopes=("salaries:read",))
ASKED = replace(make_endpoint("CLOSE", "/desk", echo, impact="reversible"), confirm=True)
OTHER = "b" * 64
PROCEDURE = Procedure(procedure_id="tidy", steps=({"method": "FETCH", "path": "/menu"},))


@asynccontextmanager
async def governed(tmp_path: Path, document: ServerDocument | None = None) -> AsyncIterator[StatefulBench]:
    store = open_store(str(tmp_path / "store.db"), role="sole")
    endpoints = (MENU, DINNER, DEED, SECRET, ASKED)
    methods = choose_methods(["*"])
    async with keeping(*endpoints, store=store, document=document, methods=methods, procedures=(PROCEDURE,)) as bench:
        yield bench


async def unsigned_faults(bench: StatefulBench) -> list[str]:
    """Verify a trail as `bespeak audit verify` does where no key is configured."""
    verification = Verification(StoreTrail(bench.store), {}, Expectation("none"))
    return [fault.kind async for fault in verification.faults()]


@pytest.mark.requirement("METHODS-10.2-1", "CORE-10.1-6", "METHODS-5.9-8")
async def test_operators_calls_cost_no_record_but_those_that_governance_needs_do(tmp_path: Path) -> None:
    async with governed(tmp_path) as bench:
        for method, path in (("FETCH", "/menu"), ("BOOK", "/table"), ("DISCOVER", "/methods"), ("FETCH", "/nowhere")):
            assert (await bench.send(method, path)).header("Audit-ID") is None
        assert (await bench.send("PAY", "/account", authority_scope="account:pay")).header("Audit-ID") is not None
        # The call itself is answered where it arrives, without the store.
        request = Request("FETCH", "/menu", "", {"agent-id": AGENT}, b"", bench.connection)
        assert isinstance(bench.bench.dispatcher(request), Response)
        for name, (method, path, body, headers, code) in GOVERNED.items():
            assert (name, (await bench.send(method, path, body, **headers)).status) == (name, code)
            record = next(one for one in await records(bench) if one["status"] == code and one["method"] == method)
            assert (name, record["agent_id"], record["path"]) == (name, AGENT, path)
        assert await unsigned_faults(bench) == []


GOVERNED: dict[str, tuple[str, str, Any, dict[str, str], int]] = {
    "irreversible call": ("PAY", "/account", {}, {"authority_scope": "account:pay"}, 200),
    "change by a standard method": ("REGISTER", "/", {"entity_type": "channel", "data": {"channel": "news"}}, {}, 200),
    "event of governance": ("LOG", "/", {"event_type": "x", "data": 1}, {}, 200),
    "escalation": ("ESCALATE", "/", {"task_id": "t", "reason": "scope_limit", "context": {}}, {}, 202),
    "scope that is missing": ("FETCH", "/salaries", {}, {"authority_scope": "menu:read"}, 455),
    "confirmation that is asked for": ("CLOSE", "/desk", {}, {}, 262),
    "grant of more than is held": (
        "AUTHORIZE",
        "/",
        {"subject": OTHER, "resource": "/menu", "scope": "account:pay"},
        {"authority_scope": "authorization:grant"},
        455,
    ),
}


@pytest.mark.requirement("METHODS-10.3-2")
async def test_runs_and_confirmations_are_on_record_with_their_input_by_default(tmp_path: Path) -> None:
    async with governed(tmp_path) as bench:
        body = {"procedure_id": "tidy", "input": {"floor": 3}}
        assert (await bench.send("RUN", "/", body, authority_scope="activation:run")).status == 200
        unknown = await bench.send("RUN", "/", {"procedure_id": "rm -rf"}, authority_scope="activation:run")
        assert unknown.status == 404
        found = [(one["agent_id"], one["extra"]["input"]) for one in await records(bench) if one["method"] == "RUN"]
        assert found == [(AGENT, body), (AGENT, {"procedure_id": "rm -rf"})]
        asked = await bench.send("CLOSE", "/desk")
        case = asked.error["confirmation_id"]
        decided = await bench.send("CONFIRM", "/", {"target_id": case, "status": "accepted"}, agent=OTHER)
        assert decided.status in (200, 403)
        found = [one for one in await records(bench) if one["method"] == "CONFIRM"]
        assert [one["extra"]["input"] for one in found] == [{"target_id": case, "status": "accepted"}]


@pytest.mark.requirement("METHODS-10.6-1", "METHODS-10.6-2")
async def test_a_transfer_is_on_record_with_the_chain_of_owners_by_default(tmp_path: Path) -> None:
    async with governed(tmp_path) as bench:
        made = await bench.send("REGISTER", "/", {"entity_type": "channel", "data": {"channel": "news"}})
        entity = made.json["result"]["entity_id"]
        for sender, receiver in ((AGENT, OTHER), (OTHER, AGENT)):
            body = {"resource_id": entity, "from_principal": sender, "to_principal": receiver}
            moved = await bench.send("TRANSFER", "/", body, agent=sender, authority_scope="channel:transfer")
            assert moved.status == 200
        recorded = [one["extra"]["input"] for one in await records(bench) if one["method"] == "TRANSFER"]
        assert [one["owners"] for one in recorded] == [[AGENT, OTHER], [AGENT, OTHER, AGENT]]
        assert [(one["from_principal"], one["to_principal"]) for one in recorded] == [(AGENT, OTHER), (OTHER, AGENT)]


@pytest.mark.parametrize(("records_", "count"), [("all", 2), ("governance", 1), ("off", 0), (None, 0)])
async def test_the_setting_decides_for_a_store_in_memory_too(records_: str | None, count: int) -> None:
    document = ServerDocument(audit=AuditSettings(records=records_))
    async with keeping(MENU, DEED, document=document) as bench:
        await bench.send("FETCH", "/menu")
        await bench.send("PAY", "/account", authority_scope="account:pay")
        assert len(await records(bench)) == count


async def test_strangers_are_not_on_the_trail_but_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with governed(tmp_path) as bench:
        assert (await bench.send("FETCH", "/salaries", agent=None)).status in (262, 455)
        assert await records(bench) == []
    async with keeping(SECRET) as bench:
        with caplog.at_level(logging.WARNING):
            assert (await bench.send("FETCH", "/salaries", authority_scope="menu:read")).status == 455
        assert AGENT in caplog.text


async def test_first_start_of_a_trail_without_a_key_is_silent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        with caplog.at_level(logging.INFO):
            async with governed(tmp_path) as bench:
                await bench.send("PAY", "/account", authority_scope="account:pay")
                assert await unsigned_faults(bench) == []
    assert [record.message for record in caplog.records if record.name != "bespeak.access"] == []


FIND = make_endpoint("FIND", "/room", lambda: {"free": True}, scopes=("booking:room",))


def token(key: OKPKey, **claims: object) -> str:
    given = {"agent_id": AGENT, "scope": "booking:room", "aud": "test.example", "exp": time.time() + 60, **claims}
    return jwt.encode({"alg": "Ed25519"}, given, key, algorithms=["Ed25519"])


async def test_callers_are_authenticated_by_current_keys_if_configured(tmp_path: Path) -> None:
    key = OKPKey.generate_key("Ed25519")
    (tmp_path / "keys.pem").write_bytes(key.as_pem(private=False))
    document = ServerDocument(auth=AuthSettings(modes=("token",), token=TokenSettings(keys=tmp_path / "keys.pem")))
    async with keeping(FIND, document=document) as bench:
        claimed = await bench.send("FIND", "/room", authority_scope="booking:room")
        assert (claimed.status, claimed.error["code"]) == (401, "agent-unauthenticated")
        assert (await bench.send("FIND", "/room", authorization=f"Bearer {token(key)}")).status == 200
        wider = await bench.send("FIND", "/room", authorization=f"Bearer {token(key)}", authority_scope="booking:*")
        assert (wider.status, wider.error["code"]) == (262, "scope-claim-invalid")
    first, second = OKPKey.generate_key("Ed25519"), OKPKey.generate_key("Ed25519")
    file = tmp_path / "keys.pem"
    file.write_bytes(first.as_pem(private=False))
    document = ServerDocument(auth=AuthSettings(modes=("token",), token=TokenSettings(keys=file)))
    async with keeping(FIND, document=document) as bench:
        assert (await bench.send("FIND", "/room", authorization=f"Bearer {token(first)}")).status == 200
        assert (await bench.send("FIND", "/room", authorization=f"Bearer {token(second)}")).status == 401


async def test_the_store_is_closed_with_its_server() -> None:
    async with keeping(FIND) as bench:
        store = bench.store
    with pytest.raises(StoreUnavailableError):
        await store.do(UseNonce("x", "y", 1.0))
