"""Sessions at the door: whose they are is checked at each request, and the store is asked as seldom as can be."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.service import AGENT, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.methods.suspension import hash_nonce
from bespeak.runtime.sessions import Sessions
from bespeak.state.store.commands.sessions import BindSession, ReadSession, ResumeSession, SuspendSession
from bespeak.state.store.opening import open_store
from bespeak.state.store.settings import SessionSettings
from bespeak.state.store.store import Command, Conflict, Store

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
SESSION = secrets.token_urlsafe(16)
SERVER = build().server


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(anyio_backend: Any) -> AsyncIterator[Store]:
    opened = open_store("memory", role="sole")
    await opened.start()
    yield opened
    await opened.close()


def named(
    session_id: str | None = SESSION, agent: str | None = AGENT, tls: str | None = None, method: str = "BOOK"
) -> Call:
    headers = {} if session_id is None else {"session-id": session_id}
    call = Call(Request(method, "/room", "", headers, b"", Connection(peer="192.0.2.1:4")), SERVER)
    call.principal = Principal(agent_id=agent, tls_identity=tls)
    return call


async def admit(sessions: Sessions, store: Store, call: Call) -> Refused | None:
    """Do what the settlement does."""
    asked = sessions.ask(call)
    if not isinstance(asked, Command):
        return asked
    done = await store.do(asked)
    return sessions.judge(call, done if isinstance(done, Conflict) else done[0])


def code(refused: Refused | Command | None) -> tuple[int, str]:
    assert isinstance(refused, Refused)
    return refused.status, refused.code


def test_a_request_without_session_is_admitted() -> None:
    sessions = Sessions(SessionSettings())
    assert sessions.ask(named(None)) is None


@pytest.mark.parametrize("text", ["", "a b", "é" * 30, "x" * 257, "s\x00"])
def test_an_invalid_session_id_is_refused(text: str) -> None:
    assert code(Sessions(SessionSettings()).ask(named(text))) == (400, "invalid-session-id")


@pytest.mark.requirement("CORE-8-1")
@pytest.mark.parametrize("text", ["1", "session-0000000000000000000000000001", "a" * 64])
def test_an_id_that_could_be_guessed_is_refused_unless_the_operator_allows_it(text: str) -> None:
    assert code(Sessions(SessionSettings()).ask(named(text))) == (400, "session-id-weak")
    assert isinstance(Sessions(SessionSettings(entropy=False)).ask(named(text)), BindSession)


async def test_a_known_session_asks_the_store_once_in_a_quarter_of_its_idle_time(store: Store) -> None:
    clock = Clock()
    sessions = Sessions(SessionSettings(idle=400), clock)
    assert await admit(sessions, store, named()) is None
    clock.now += 99
    assert sessions.ask(named()) is None
    clock.now += 2
    assert isinstance(sessions.ask(named()), BindSession)
    assert await admit(sessions, store, named()) is None
    assert sessions.ask(named()) is None


@pytest.mark.requirement("CORE-6.1-2", "CORE-8-2")
@pytest.mark.parametrize(
    "stranger",
    [named(agent=OTHER, tls="cert"), named(agent=None, tls="cert"), named(tls="another cert"), named()],
    ids=["another agent", "nobody", "another certificate", "no certificate"],
)
@pytest.mark.parametrize("remembered", [True, False])
async def test_a_session_of_another_agent_is_403_and_its_id_is_not_logged(
    store: Store, stranger: Call, remembered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    first = Sessions(SessionSettings())
    assert await admit(first, store, named(tls="cert")) is None
    sessions = first if remembered else Sessions(SessionSettings())
    with caplog.at_level(logging.WARNING):
        refused = await admit(sessions, store, stranger)
    assert code(refused) == (403, "session-of-another")
    assert "192.0.2.1" in caplog.text
    assert SESSION not in caplog.text + str(refused)
    assert await admit(sessions, store, named(tls="cert")) is None


def suspension(resume_by: float = 4e9) -> SuspendSession:
    return SuspendSession(SESSION, AGENT, "", "susp-1", "hash", resume_by)


@pytest.mark.requirement("CORE-6.1-4")
async def test_a_suspended_session_refuses_every_request_but_resume(store: Store) -> None:
    sessions = Sessions(SessionSettings())
    sessions.watch(store)
    assert await admit(sessions, store, named()) is None
    await store.do(suspension())
    for _ in range(2):
        refused = await admit(sessions, store, named())
        assert code(refused) == (409, "session-suspended")
        assert refused is not None
        assert refused.details["resume_by"] == "2096-10-02T07:06:40Z"
    found = SERVER.routes.router.find("RESUME", "/")
    assert found is not None
    assert await admit(sessions, store, RoutedCall(named(method="RESUME"), found[0])) is None
    assert code(await admit(sessions, store, named())) == (409, "session-suspended")
    assert len(sessions) == 0


@pytest.mark.requirement("CORE-4.11-4")
async def test_a_session_that_was_not_resumed_in_time_is_408(store: Store) -> None:
    sessions = Sessions(SessionSettings())
    sessions.watch(store)
    await admit(sessions, store, named())
    await store.do(suspension(resume_by=1.0e9))
    assert code(await admit(sessions, store, named())) == (408, "session-expired")


async def test_an_answer_of_the_store_that_is_outdated_is_not_remembered(store: Store) -> None:
    sessions = Sessions(SessionSettings())
    sessions.watch(store)
    call = named()
    asked = sessions.ask(call)
    assert isinstance(asked, BindSession)
    done = await store.do(asked)
    await store.do(suspension())
    assert not isinstance(done, Conflict)
    assert sessions.judge(call, done[0]) is None  # it came before the suspension
    assert code(await admit(sessions, store, named())) == (409, "session-suspended")


async def test_memory_is_bounded_however_many_sessions_come(store: Store) -> None:
    sessions = Sessions(SessionSettings(), most=3)
    calls = [named(secrets.token_hex(16)) for _ in range(10)]
    for call in calls:
        assert await admit(sessions, store, call) is None
    assert len(sessions) == 3
    assert sessions.ask(calls[-1]) is None
    assert isinstance(sessions.ask(calls[0]), BindSession)


async def test_a_session_is_its_owners_and_paused_for_all_its_requests_over_the_wire(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    book = make_endpoint("BOOK", "/room", echo)
    document = ServerDocument(sessions=SessionSettings(suspended=60))
    async with keeping(book, store=open_store(place, role="sole"), document=document) as bench:
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).status == 200
        assert (await bench.send("BOOK", "/room", session_id=SESSION, agent=OTHER)).error[
            "code"
        ] == "session-of-another"
        assert (await bench.send("BOOK", "/room", session_id="1")).error["code"] == "session-id-weak"
        reply = await bench.send("SUSPEND", "/", {"session_id": SESSION}, session_id=SESSION)
        assert reply.status == 200
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).error["code"] == "session-suspended"
    async with keeping(book, store=open_store(place, role="sole"), document=document) as bench:
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).error["code"] == "session-suspended"
        nonce = hash_nonce(reply.json["result"]["resumption_nonce"])
        await bench.store.do(ResumeSession(SESSION, AGENT, "", nonce, 60.0))
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).status == 200


async def test_an_anonymous_caller_stores_no_session_and_cannot_use_one_of_others(store: Store) -> None:
    for sessions in (Sessions(SessionSettings()), Sessions(SessionSettings())):
        assert await admit(sessions, store, named(agent=None)) is None
        assert (len(sessions), await store.read(ReadSession(SESSION))) == (0, None)
    assert await admit(sessions, store, named()) is None
    for process in (sessions, Sessions(SessionSettings())):
        assert code(await admit(process, store, named(agent=None))) == (403, "session-of-another")
    assert sessions.ask(named()) is None  # its owner is still known
