"""Admit, invoke, commit: nothing is acknowledged that is not stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.service import echo, make_endpoint
from tests.stateful import keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import StoreUnavailableError
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import decode64
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime import settlement
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.exchange import REPLAYED
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.commands.cases import DecideCase
from bespeak.state.store.commands.idempotency import FinishKey, RecordKey, UseNonce
from bespeak.state.store.settings import IdempotencySettings, open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Then

pytestmark = pytest.mark.anyio


def changing(value: str = "v") -> Endpoint:
    """Build an endpoint that uses up a value in the store."""

    def answer(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return Refused(status.CONFLICT, "used-up", "It was used before.")
        return Envelope({"used": value})

    def handle() -> Any:
        return Effects((UseNonce("test", value, 1000.0),), answer)

    return make_endpoint("EXECUTE", "/value", handle, impact="irreversible")


class Absent(SqliteStore):
    """A store that can be made to fail as one does whose disk is full."""

    away = False

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        if self.away:
            raise StoreUnavailableError("There is no room.")
        done = await super().do(*commands, then=then)
        if isinstance(commands[0], FinishKey | RecordKey):
            self.stored.set()
        return done

    @property
    def stored(self) -> asyncio.Event:
        """Set when an answer was stored."""
        return self.__dict__.setdefault("_stored", asyncio.Event())


def jws_payload(jws: str) -> dict[str, Any]:
    """Return the payload of a record."""
    found: dict[str, Any] = msgspec.json.decode(decode64(jws.split(".")[1]) or b"")
    return found


def absent() -> Absent:
    store = Absent.in_memory()
    assert isinstance(store, Absent)
    return store


async def test_a_change_of_state_and_its_answer_are_one_transaction() -> None:
    async with keeping(changing()) as bench:
        first = await bench.send("EXECUTE", "/value", {}, idempotency_key="k")
        assert first.json["result"] == {"used": "v"}
        again = await bench.send("EXECUTE", "/value", {}, idempotency_key="k")
        assert (again.response.body, again.header(REPLAYED[0])) == (first.response.body, "true")


async def test_a_change_that_cannot_be_made_is_refused_as_the_method_says() -> None:
    async with keeping(changing()) as bench:
        assert (await bench.send("EXECUTE", "/value", {})).status == 200
        assert (await bench.send("EXECUTE", "/value", {}, idempotency_key="other")).refusal == (409, "used-up")


async def test_a_handler_that_waits_may_change_state_too() -> None:
    inner = changing().handler
    assert hasattr(inner, "target")

    async def handle() -> Any:
        await asyncio.sleep(0)
        return inner.target()

    async with keeping(make_endpoint("EXECUTE", "/value", handle, impact="irreversible")) as bench:
        assert (await bench.send("EXECUTE", "/value", {})).json["result"] == {"used": "v"}


async def test_a_call_that_was_taken_over_is_not_refused_for_what_the_other_process_did(tmp_path: Path) -> None:
    inner, started, finish = changing().handler, asyncio.Event(), asyncio.Event()
    assert hasattr(inner, "target")

    async def handle() -> Any:
        if not started.is_set():
            started.set()
            await finish.wait()
        return inner.target()

    endpoint = make_endpoint("EXECUTE", "/value", handle, impact="irreversible")
    document = ServerDocument(idempotency=IdempotencySettings(lease=0.0))
    async with keeping(endpoint, store=open_store(str(tmp_path / "s.db"), role="shared"), document=document) as bench:
        slow = asyncio.create_task(bench.send("EXECUTE", "/value", {}, idempotency_key="k"))
        await started.wait()
        assert (await bench.send("EXECUTE", "/value", {}, idempotency_key="k")).json["result"] == {"used": "v"}
        finish.set()
        answer = await slow
        assert answer.refusal == (409, "idempotency-lease-lost")
        assert answer.header("Retry-After")


@pytest.mark.requirement("CORE-6.1-11")
async def test_without_the_store_stateful_calls_are_503_and_others_work() -> None:
    calls = []

    def handle() -> dict[str, Any]:
        calls.append(1)
        return {}

    store = absent()
    booking = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    async with keeping(booking, changing(), store=store) as bench:
        store.away = True
        refused = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert (refused.status, refused.error["code"]) == (503, "store-unavailable")
        assert refused.header("Retry-After") == "2"
        assert (await bench.send("EXECUTE", "/value", {})).status == 503
        assert (await bench.send("BOOK", "/room", {})).status == 200
        store.away = False
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 200
        assert (await bench.send("EXECUTE", "/value", {})).status == 200


@pytest.mark.parametrize("sole", [True, False])
async def test_call_done_without_the_store_is_not_repeated(*, sole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement, "_PAUSE", 1000.0)
    calls = []
    store = absent()
    store.sole = sole

    def handle() -> dict[str, Any]:
        calls.append(1)
        store.away = len(calls) == 1
        return {"count": len(calls)}

    booking = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    document = ServerDocument(idempotency=IdempotencySettings(lease=0.0))
    async with keeping(booking, store=store, document=document) as bench:
        for _ in range(3):
            assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 503
        store.away = False
        other = await bench.send("BOOK", "/room", {}, idempotency_key="k", task_id="t-1")
        assert (other.status, other.json, other.header(REPLAYED[0])) == (200, {"count": 1}, None)
        assert other.header("Task-ID") == "t-1"
        again = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert (again.json, [value for name, value in again.response.headers if name == REPLAYED[0]]) == (
            {"count": 1},
            ["true"],
        )
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="another")).json == {"count": 2}


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("sole", [True, False])
async def test_answer_that_the_store_did_not_take_is_stored_when_it_is_back(
    *, sole: bool, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settlement, "_PAUSE", 1000.0 if stops else 0.001)
    calls = []
    store = absent()
    store.sole = sole

    def handle() -> dict[str, Any]:
        calls.append(1)
        store.away = len(calls) == 1
        return {"count": len(calls)}

    booking = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    document = ServerDocument(idempotency=IdempotencySettings(lease=0.0), audit=AuditSettings(records="all"))
    async with keeping(booking, store=store, document=document) as bench:
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 503
        assert not store.stored.is_set()
        store.away = False
        if stops:
            await bench.bench.dispatcher.finish()
        await asyncio.wait_for(store.stored.wait(), 10)
        # Nobody has asked again here. Another process, whose memory has none of this, answers from the store.
        async with keeping(booking, store=store, document=document) as other:
            again = await other.send("BOOK", "/room", {}, idempotency_key="k")
            assert (again.json, again.header(REPLAYED[0]), calls) == ({"count": 1}, "true", [1])
            recorded = [jws_payload(row[5]) for row in await store.read(ScanAudit())]
            assert [one["status"] for one in recorded] == [200, 200]


async def test_confirmed_call_done_while_the_store_was_away_gets_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement, "_PAUSE", 1000.0)
    store = absent()
    calls = []

    def handle() -> dict[str, Any]:
        calls.append(1)
        store.away = True
        return {"count": len(calls)}

    policies = Policies(confirm_irreversible=True)
    booking = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    async with keeping(booking, store=store, policies=policies) as bench:
        case_id = (await bench.send("BOOK", "/room", {}, idempotency_key="k")).error["confirmation_id"]
        await store.do(DecideCase(case_id, "accepted", "operator:desk", "att-1", kinds=("confirmation",)))
        confirmed = {"idempotency_key": "k", "confirmation_id": case_id}
        for _ in range(2):
            assert (await bench.send("BOOK", "/room", {}, **confirmed)).status == 503
        store.away = False
        for marked in (None, "true"):
            reply = await bench.send("BOOK", "/room", {}, **confirmed)
            assert (reply.status, reply.json, reply.header(REPLAYED[0])) == (200, {"count": 1}, marked)


async def test_after_a_store_failure_no_handler_runs_without_a_record() -> None:
    calls = []

    def handle() -> dict[str, Any]:
        calls.append(1)
        return {}

    store = absent()
    booking = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    async with keeping(booking, store=store, document=ServerDocument(audit=AuditSettings(records="all"))) as bench:
        store.away = True
        for _ in range(3):
            assert (await bench.send("BOOK", "/room", {})).status == 503
        assert len(calls) == 1  # that the store is away was not known before
        store.away = False
        assert (await bench.send("BOOK", "/room", {})).status == 200
        assert len(calls) == 2


async def test_a_key_is_free_again_when_the_store_fails_before_a_confirmation_is_asked_for() -> None:
    store = absent()
    policies = Policies(confirm_irreversible=True)
    booking = make_endpoint("BOOK", "/room", echo, impact="irreversible")
    async with keeping(booking, store=store, policies=policies) as bench:
        store.away = True
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 503
        store.away = False
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).refusal == (262, "confirmation-required")


async def test_a_claim_in_the_store_is_prolonged_while_its_handler_runs(tmp_path: Path) -> None:
    finish, renewed = asyncio.Event(), asyncio.Event()

    class Watched(SqliteStore):
        async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
            done = await super().do(*commands, then=then)
            if type(commands[0]).__name__ == "RenewKey":
                renewed.set()
            return done

    async def handle() -> dict[str, Any]:
        await finish.wait()
        return {}

    store = Watched(str(tmp_path / "s.db"))
    store.sole = False
    document = ServerDocument(idempotency=IdempotencySettings(lease=0.02))
    async with keeping(
        make_endpoint("BOOK", "/room", handle, impact="irreversible"), store=store, document=document
    ) as bench:
        running = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
        await renewed.wait()
        finish.set()
        assert (await running).status == 200


@pytest.mark.parametrize("sole", [True, False])
async def test_cancelled_request_frees_its_key_and_is_recorded(caplog: pytest.LogCaptureFixture, *, sole: bool) -> None:
    started = asyncio.Event()
    calls = []

    async def handle() -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            started.set()
            await asyncio.Event().wait()
        return {}

    store = open_store("memory", role="sole")
    store.sole = sole
    document = ServerDocument(audit=AuditSettings(records="all"))
    endpoint = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    async with keeping(endpoint, store=store, document=document) as bench:
        given_up = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
        await started.wait()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await bench.bench.dispatcher.finish()
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 200
        records = [jws_payload(jws) for *_, jws in await store.read(ScanAudit())]
    assert [record["status"] for record in records] == [408, 200]
    assert "BOOK /room was cancelled before it was answered" in caplog.text


async def test_an_answer_that_is_being_stored_when_its_request_is_cancelled_is_stored() -> None:
    storing = asyncio.Event()

    class Slow(SqliteStore):
        async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
            storing.set()
            return await super().do(*commands, then=then)

    calls = []

    def handle() -> dict[str, Any]:
        calls.append(1)
        return {}

    store = Slow.in_memory()
    async with keeping(make_endpoint("BOOK", "/room", handle, impact="irreversible"), store=store) as bench:
        given_up = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
        await storing.wait()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert ((await bench.send("BOOK", "/room", {}, idempotency_key="k")).status, len(calls)) == (200, 1)


async def test_requests_that_need_no_state_are_answered_without_waiting() -> None:
    store = open_store("memory", role="sole")
    async with keeping(make_endpoint("FIND", "/room", lambda: {"free": True}), store=store) as bench:
        assert bench.bench.send("FIND", "/room").status == 200


async def test_a_key_does_not_spare_a_call_its_confirmation() -> None:
    calls = []

    def handle() -> dict[str, Any]:
        calls.append(1)
        return {}

    endpoint = replace(make_endpoint("BOOK", "/room", handle, impact="irreversible"), confirm=True)
    async with keeping(endpoint) as bench:
        first = await bench.send("BOOK", "/room", {}, idempotency_key="first")
        assert (first.status, first.error["type"]) == (262, "confirmation-required")
        assert calls == []
