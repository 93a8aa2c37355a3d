"""Sessions at the door: whose they are is checked at each request, and the store is asked as seldom as can be."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Any

import pytest
from tests.service import AGENT, Reply, build, echo, make_endpoint
from tests.state.store.single import ReadSession
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.exchange import REPLAYED
from bespeak.runtime.methods.lifecycle import hash_nonce
from bespeak.runtime.sessions import Pausing, Sessions
from bespeak.state.store.commands.sessions import BindSession, ResumeSession, SuspendSession
from bespeak.state.store.settings import SessionSettings, open_store
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
    assert Sessions(SessionSettings()).ask(named(None)) is None


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
        assert refused.details["resume_by"] == "2096-10-02T07:06:40Z"
    found = SERVER.routes.router.find("RESUME", "/")
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


DESK, PAUSING_OTHER = "d" * 64, "b" * 64
BOOK = make_endpoint("BOOK", "/room", echo, impact="reversible")


async def escalate(bench: StatefulBench, task_id: str = "t", **headers: Any) -> str:
    body = {"task_id": task_id, "reason": "ethical_flag", "context": {}, "recipient": DESK}
    reply = await bench.send("ESCALATE", "/", body, **headers)
    assert (reply.status, reply.json["result"]["task_paused"]) == (202, True)
    case_id: str = reply.json["result"]["escalation_id"]
    return case_id


async def decide(bench: StatefulBench, case_id: str, status: str) -> None:
    body = {"target_id": case_id, "status": status, "reason": "because"}
    assert (await bench.send("CONFIRM", "/", body, agent=DESK, task_id="t")).status == 200


async def book(bench: StatefulBench, task_id: str = "t", **headers: Any) -> Reply:
    return await bench.send("BOOK", "/room", task_id=task_id, **headers)


@pytest.mark.requirement("CORE-4.9-4")
async def test_a_task_is_refused_from_its_escalation_to_its_acceptance() -> None:
    async with keeping(BOOK) as bench:
        assert (await book(bench)).status == 200
        case_id = await escalate(bench)
        refused = await book(bench)
        assert (refused.status, refused.error["code"]) == (409, "task-paused")
        assert (refused.error["escalation_id"], refused.error["routed_to"]) == (case_id, DESK)
        assert (refused.json["task_id"], refused.header("Task-ID")) == ("t", "t")
        await decide(bench, case_id, "deferred")
        assert (await book(bench)).error["escalation_status"] == "deferred"
        await decide(bench, case_id, "accepted")
        assert (await book(bench)).status == 200


async def test_a_rejected_task_does_not_continue_and_its_reason_is_told() -> None:
    async with keeping(BOOK) as bench:
        await decide(bench, await escalate(bench), "rejected")
        assert (await book(bench)).told("code", "reason") == (403, "task-rejected", "because")
        assert (await book(bench, "u")).status == 200


async def test_other_tasks_other_agents_and_calls_without_a_task_run() -> None:
    async with keeping(BOOK) as bench:
        await escalate(bench)
        assert (await book(bench, "u")).status == 200
        assert (await book(bench, agent=PAUSING_OTHER)).status == 200
        assert (await bench.send("BOOK", "/room")).status == 200


async def test_a_paused_task_may_look_and_escalate_but_not_delegate() -> None:
    async with keeping(BOOK, agents=(Agent(agent_id=AGENT, name="ada"),)) as bench:
        case_id = await escalate(bench)
        assert await escalate(bench, task_id="t", agent=AGENT) == case_id
        assert (await bench.send("DESCRIBE", "/", task_id="t")).status == 200
        assert (await bench.send("DISCOVER", "/methods", task_id="t")).status == 200
        given = {"target_agent_id": PAUSING_OTHER, "task": "x", "authority_scope": "a:b", "delegation_token": "x"}
        assert (await bench.send("DELEGATE", "/", given, task_id="t")).error["code"] == "task-paused"


async def test_answers_from_before_the_pause_are_replayed() -> None:
    async with keeping(BOOK) as bench:
        first = await book(bench, idempotency_key="k")
        await escalate(bench)
        again = await book(bench, idempotency_key="k")
        assert (again.response.body, again.header(REPLAYED[0])) == (first.response.body, "true")
        assert (await book(bench, idempotency_key="new")).error["code"] == "task-paused"


async def test_a_pause_survives_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(BOOK, store=open_store(place, role="sole")) as bench:
        case_id = await escalate(bench)
    async with keeping(BOOK, store=open_store(place, role="sole")) as bench:
        assert (await book(bench)).error["escalation_id"] == case_id


async def test_the_store_is_asked_where_not_all_paused_tasks_are_in_memory() -> None:
    async with keeping(BOOK) as bench:
        await escalate(bench)
        await escalate(bench, "u")
        tasks = bench.bench.server.tasks
        tasks._most = 0
        tasks._paused = {}
        tasks.complete = False
        assert (await book(bench)).error["code"] == "task-paused"
        assert (await book(bench, "u")).error["code"] == "task-paused"
        assert (await book(bench, "v")).status == 200


async def test_delegates_of_an_agent_share_its_pause() -> None:
    async with keeping(BOOK) as bench:
        await escalate(bench)
        server = bench.bench.server
        for principal, paused in (
            (Principal(agent_id=PAUSING_OTHER, delegators=(AGENT,)), True),
            (Principal(agent_id=PAUSING_OTHER), False),
        ):
            call = Call(Request("BOOK", "/room", "", {"task-id": "t"}, b"", Connection()), server)
            call.principal = principal
            routed = RoutedCall(call, server.routes.direct["/room"]["BOOK"])
            assert isinstance(Pausing(server.tasks).ask(routed), Refused) is paused


@pytest.mark.parametrize("task_id", ["a\u0000b", "x" * 65_537, " t", "a\r\nEvil: yes"])
async def test_a_task_that_no_call_can_name_cannot_be_escalated(task_id: str) -> None:
    async with keeping(BOOK) as bench:
        reply = await bench.send("ESCALATE", "/", {"task_id": task_id, "reason": "ethical_flag", "context": {}})
        assert (reply.status, reply.error["code"]) == (422, "invalid-task-id")
