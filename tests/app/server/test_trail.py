"""The audit records of a server, and the trail across restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak import Refusal
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.base64url import decode64
from bespeak.state.audit.compact import parse_compact
from bespeak.state.audit.expectation import Expectation
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.audit.trail import StoreTrail
from bespeak.state.audit.trusted_keys import trusted
from bespeak.state.audit.verification import Verification
from bespeak.state.identity.key_text import generate_key
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

KEY = generate_key()
AUDITED = ServerDocument(audit=AuditSettings(enabled=True))


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
        compact = parse_compact(row[5])
        assert compact is not None
        found.append(msgspec.json.decode(decode64(row[5].split(".")[1]) or b""))
    return found


@pytest.mark.requirement("CORE-2.4-3", "CORE-10.3-2", "CORE-12-1")
async def test_an_answer_names_its_record_and_carries_it_signed() -> None:
    async with keeping(BOOKING, document=AUDITED, keys=(KEY,)) as bench:
        reply = await bench.send("BOOK", "/room", {"room": "12"}, task_id="t-1")
        assert reply.status == 200
        record = reply.header("Attribution-Record") or ""
        rows = await bench.store.read(ScanAudit())
        assert [row[4:] for row in rows] == [(reply.header("Audit-ID"), record)]
        payload = (await records(bench))[0]
        assert payload["agent_id"] == AGENT
        assert payload["task_id"] == "t-1"
        assert (payload["method"], payload["path"], payload["status"]) == ("BOOK", "/room", 200)
        assert payload["server_id"] == "test.example"
        assert payload["response_id"] == reply.header("Response-ID")


@pytest.mark.requirement("CORE-2.4-4")
async def test_without_a_key_the_answer_names_its_record_only() -> None:
    async with keeping(BOOKING, document=AUDITED) as bench:
        reply = await bench.send("BOOK", "/room", {"room": "12"})
        assert reply.header("Attribution-Record") is None
        assert len(reply.header("Audit-ID") or "") == 64


async def test_refusals_and_replays_are_on_record_too() -> None:
    async with keeping(BOOKING, document=AUDITED) as bench:
        await bench.send("BOOK", "/room", {"room": "taken"}, idempotency_key="k")
        await bench.send("BOOK", "/room", {"room": "taken"}, idempotency_key="k")
        await bench.send("BOOK", "/room", {"wrong": 1})
        await bench.send("FROBNICATE", "/room", {})
        found = await records(bench)
        assert [record["status"] for record in found] == [422, 422, 422, 459]
        assert [record.get("replayed", False) for record in found] == [False, True, False, False]


async def test_arguments_are_recorded_only_where_the_operator_named_them() -> None:
    async with keeping(BOOKING, document=AUDITED) as bench:
        await bench.send("BOOK", "/room", {"room": "secret-room"})
        rows = await bench.store.read(ScanAudit())
        assert b"secret-room" not in (decode64(rows[0][5].split(".")[1]) or b"")
    named = ServerDocument(audit=AuditSettings(enabled=True, fields={("BOOK", "/room"): ("room",)}))
    async with keeping(BOOKING, document=named) as bench:
        await bench.send("BOOK", "/room", {"room": "12"})
        assert (await records(bench))[0]["extra"] == {"input": {"room": "12"}}


async def faults(bench: StatefulBench, sign: str) -> list[str]:
    verification = Verification(StoreTrail(bench.store), trusted([KEY]), Expectation(sign, frozenset({"test.example"})))
    return [fault.kind async for fault in verification.faults()]


async def test_signing_is_switched_on_and_off_and_on_with_a_trail_that_verifies(tmp_path: Path) -> None:
    place = str(tmp_path / "bespeak.db")
    for sign, keys in ((None, ()), ("each", (KEY,)), ("none", (KEY,)), ("none", (KEY,)), ("checkpoints", (KEY,))):
        document = ServerDocument(audit=AuditSettings(enabled=True, sign=sign))
        async with keeping(BOOKING, document=document, keys=keys, store=open_store(place, role="sole")) as bench:
            reply = await bench.send("BOOK", "/room", {"room": "1"})
            assert (reply.header("Attribution-Record") is not None) == (sign == "each")
            if keys:
                assert await faults(bench, sign or "each") == []


async def test_key_that_is_removed_without_a_record_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
    everything = ServerDocument(audit=AuditSettings(enabled=True, discovery=True))
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
