"""The life of sessions and agents, changed only by whom it concerns."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.service import AGENT, Reply, build, echo, make_endpoint
from tests.state.store.single import ReadSession
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.extensions.negotiation.store import PublishProposal
from bespeak.protocol.exchange.instant import read_instant, write_instant
from bespeak.runtime.exchange import REPLAYED
from bespeak.runtime.methods.lifecycle import CHANGES, MOST_CHECKPOINT, hash_nonce
from bespeak.state.store.commands.agents import ReadLifecycle
from bespeak.state.store.commands.sessions import BindSession, ResumeSession, SuspendSession
from bespeak.state.store.settings import SessionSettings, open_store
from bespeak.state.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
SESSION = secrets.token_urlsafe(16)


async def suspended(bench: StatefulBench, agent: str = AGENT, **fields: Any) -> Reply:
    await bench.store.do(BindSession(SESSION, AGENT, "", 600.0))
    return await bench.send("SUSPEND", "/", {"session_id": SESSION, **fields}, agent=agent)


@pytest.mark.requirement("CORE-4.11-2", "CORE-4.11-3", "CORE-4.11-8")
async def test_the_answer_has_everything_needed_to_resume(bench: StatefulBench) -> None:
    resume_by = write_instant(time.time() + 3600)
    reply = await suspended(bench, reason="awaiting_input", checkpoint={"step": [3]}, resume_by=resume_by)
    assert reply.status == 200
    result = reply.json["result"]
    assert result.keys() == {"suspension_id", "session_id", "resumption_nonce", "resume_by", "status"}
    assert (result["session_id"], result["status"], result["resume_by"]) == (SESSION, "suspended", resume_by)
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", result["resumption_nonce"])
    session = await bench.store.read(ReadSession(SESSION))
    assert (session.state, session.reason, session.checkpoint) == ("suspended", "awaiting_input", '{"step":[3]}')


async def test_only_the_hash_of_the_nonce_is_stored_and_it_resumes_the_session(bench: StatefulBench) -> None:
    nonce = (await suspended(bench, checkpoint=None)).json["result"]["resumption_nonce"]
    assert hash_nonce(nonce) == hashlib.sha256(nonce.encode()).hexdigest()
    done: Any = await bench.store.do(ResumeSession(SESSION, AGENT, "", hash_nonce(nonce), 60.0))
    assert (done[0].state, done[0].checkpoint) == ("active", "null")


@pytest.mark.requirement("CORE-4.11-3")
async def test_each_suspension_has_a_new_nonce(bench: StatefulBench) -> None:
    nonces = set()
    for _ in range(3):
        nonce = (await suspended(bench)).json["result"]["resumption_nonce"]
        nonces.add(nonce)
        await bench.store.do(ResumeSession(SESSION, AGENT, "", hash_nonce(nonce), 60.0))
    assert len(nonces) == 3


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01T00:00:00Z", "2020-01-01T00:00:00Z", "9" * 200])
async def test_an_invalid_or_past_time_is_400_and_does_not_suspend(bench: StatefulBench, text: str) -> None:
    assert (await suspended(bench, resume_by=text)).told("code", "field") == (400, "invalid-time", "/resume_by")
    assert (await bench.store.read(ReadSession(SESSION))).state == "active"


@pytest.mark.parametrize("wish", [{}, {"resume_by": "2999-01-01T00:00:00Z"}])
async def test_session_is_suspended_no_longer_than_operator_allows(bench: StatefulBench, wish: dict[str, str]) -> None:
    bench.bench.server.sessions = SessionSettings(suspended=120)
    resume_by = read_instant((await suspended(bench, **wish)).json["result"]["resume_by"])
    assert resume_by == pytest.approx(time.time() + 120, abs=5)


@pytest.mark.requirement("CORE-4.11-6")
@pytest.mark.parametrize("session_id", ["no-such-session", "a\u0000b", "x" * 1000])
async def test_a_session_that_is_not_there_is_404(bench: StatefulBench, session_id: str) -> None:
    assert (await bench.send("SUSPEND", "/", {"session_id": session_id})).refusal == (404, "session-not-found")


@pytest.mark.requirement("CORE-4.11-6")
@pytest.mark.parametrize("sole", [True, False])
async def test_an_answer_that_was_lost_is_given_again_in_the_suspended_session(tmp_path: Path, *, sole: bool) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    store.sole = sole
    async with keeping(store=store) as bench:
        first = await bench.send("SUSPEND", "/", {"session_id": SESSION}, session_id=SESSION, idempotency_key="k")
        assert first.status == 200
        again = await bench.send("SUSPEND", "/", {"session_id": SESSION}, session_id=SESSION, idempotency_key="k")
        assert (again.response.body, again.header(REPLAYED[0])) == (first.response.body, "true")
        for key in ({}, {"idempotency_key": "other"}):
            refused = await bench.send("SUSPEND", "/", {"session_id": SESSION}, session_id=SESSION, **key)
            assert (refused.status, refused.error["code"]) == (409, "session-suspended")


@pytest.mark.requirement("CORE-4.11-9")
async def test_a_session_of_another_suspended_or_expired_is_refused(bench: StatefulBench) -> None:
    assert (await suspended(bench, agent=OTHER)).refusal == (404, "session-not-found")
    assert (await bench.store.read(ReadSession(SESSION))).state == "active"
    await bench.store.do(SuspendSession(SESSION, AGENT, "", "susp-1", hash_nonce("n"), time.time() + 60))
    assert (await bench.send("SUSPEND", "/", {"session_id": SESSION})).refusal == (409, "session-suspended")
    late = SESSION[::-1]
    await bench.store.do(BindSession(late, AGENT, "", 600.0))
    await bench.store.do(SuspendSession(late, AGENT, "", "susp-2", hash_nonce("n"), time.time() - 1))
    assert (await bench.send("SUSPEND", "/", {"session_id": late})).refusal == (408, "session-expired")


async def test_a_checkpoint_is_bounded(bench: StatefulBench) -> None:
    assert (await suspended(bench, checkpoint="x" * (MOST_CHECKPOINT - 1))).status == 413
    assert (await suspended(bench, checkpoint="x" * (MOST_CHECKPOINT - 2))).status == 200


@pytest.mark.requirement("CORE-4.11-5")
async def test_a_suspended_session_is_resumed_after_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(store=open_store(place, role="sole")) as bench:
        nonce = (await suspended(bench, checkpoint={"step": 3})).json["result"]["resumption_nonce"]
    async with keeping(store=open_store(place, role="sole")) as bench:
        done: Any = await bench.store.do(ResumeSession(SESSION, AGENT, "", hash_nonce(nonce), 60.0))
        assert done[0].checkpoint == '{"step":3}'


async def test_the_agent_or_anonymous_caller_releases_its_synthesis() -> None:
    async with negotiating() as bench:
        synthesis_id = (await bench.send("PROPOSE", "/", lodgings())).json["synthesis_id"]
        body = {"synthesis_id": synthesis_id}
        assert (await bench.send("SUSPEND", "/", body, agent="b" * 64)).refusal == (404, "synthesis-not-found")
        released = await bench.send("SUSPEND", "/", body)
        assert (released.status, released.json["result"]["synthesis_cleared"]) == (200, True)
        assert (await bench.send("FIND", "/lodgings", {"town": "Rome"})).status == 404
        assert (await bench.send("SUSPEND", "/", body)).status == 404
        synthesis_id = (await bench.send("PROPOSE", "/", lodgings(), agent=None)).json["synthesis_id"]
        assert (await bench.send("SUSPEND", "/", {"synthesis_id": synthesis_id})).status == 404
        assert (await bench.send("SUSPEND", "/", {"synthesis_id": synthesis_id}, agent=None)).status == 200


async def test_published_synthesis_of_another_agent_is_not_released() -> None:
    async with negotiating(persistent=True) as bench:
        wanted = {"endpoint": lodgings(), "persistent": True}
        synthesis_id = (await bench.send("PROPOSE", "/", wanted)).json["synthesis_id"]
        hidden = await bench.send("SUSPEND", "/", {"synthesis_id": synthesis_id}, agent="b" * 64)
        assert (hidden.status, hidden.error["code"]) == (404, "synthesis-not-found")
        await bench.store.do(PublishProposal(f"prop-{synthesis_id[4:]}", 3600.0))
        refused = await bench.send("SUSPEND", "/", {"synthesis_id": synthesis_id}, agent="b" * 64)
        assert (refused.status, refused.error["code"]) == (403, "synthesis-of-another")
        await bench.send("SUSPEND", "/", {"synthesis_id": synthesis_id})
        assert "/lodgings" not in str((await bench.send("DISCOVER", "/", agent=None)).json)


async def test_agent_withdraws_a_proposal_by_its_id() -> None:
    async with negotiating(approval="all") as bench:
        proposal_id = (await bench.send("PROPOSE", "/", lodgings())).json["proposal_id"]
        body = {"synthesis_id": proposal_id}
        assert (await bench.send("SUSPEND", "/", body, agent="b" * 64)).status == 404
        assert (await bench.send("SUSPEND", "/", body)).json["result"]["synthesis_cleared"] is True
        assert (await bench.send("QUERY", f"/proposals/{proposal_id}")).status == 404


async def test_suspend_needs_a_session_or_a_synthesis() -> None:
    async with negotiating(policies={"synthesis_enabled": False}) as bench:
        assert (await bench.send("SUSPEND", "/", {})).status == 422
        assert (await bench.send("SUSPEND", "/", {"synthesis_id": "syn-1"})).status == 404


BOOK = make_endpoint("BOOK", "/room", echo)


async def suspend(bench: StatefulBench, **fields: Any) -> str:
    await bench.send("BOOK", "/room", session_id=SESSION)
    reply = await bench.send("SUSPEND", "/", {"session_id": SESSION, **fields}, session_id=SESSION)
    nonce: str = reply.json["result"]["resumption_nonce"]
    return nonce


async def resume(bench: StatefulBench, nonce: str, agent: str = AGENT, **fields: Any) -> Reply:
    return await bench.send("RESUME", "/", {"workflow_id": SESSION, "resumption_nonce": nonce, **fields}, agent=agent)


@pytest.mark.requirement("METHODS-8.7-2", "METHODS-8.7-3", "CORE-4.11-5", "CORE-8-4", "CORE-4.11-11")
async def test_a_session_is_resumed_once_and_its_checkpoint_is_returned() -> None:
    async with keeping(BOOK) as bench:
        nonce = await suspend(bench, checkpoint={"step": 3})
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).error["code"] == "session-suspended"
        reply = await resume(bench, nonce)
        assert reply.status == 200
        receipt = reply.json["result"]
        assert (receipt["workflow_id"], receipt["status"], receipt["checkpoint"]) == (SESSION, "active", {"step": 3})
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).status == 200
        assert (await resume(bench, nonce)).refusal == (409, "resumption-nonce-used")


@pytest.mark.requirement("METHODS-8.7-5")
async def test_resume_may_be_sent_in_the_suspended_session_with_a_new_checkpoint(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(BOOK, store=open_store(place, role="sole")) as bench:
        nonce = await suspend(bench, checkpoint=1)
    async with keeping(BOOK, store=open_store(place, role="sole")) as bench:
        body = {"workflow_id": SESSION, "resumption_nonce": nonce, "checkpoint": [2]}
        reply = await bench.send("RESUME", "/", body, session_id=SESSION)
        assert (reply.status, reply.json["result"]["checkpoint"]) == (200, [2])
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).status == 200


async def test_an_operators_own_resume_does_not_pass_a_suspended_session() -> None:
    async with keeping(make_endpoint("RESUME", "/pipeline", echo)) as bench:
        await suspend(bench)
        assert (await bench.send("RESUME", "/pipeline", session_id=SESSION)).error["code"] == "session-suspended"


@pytest.mark.requirement("METHODS-8.7-4", "CORE-8-5")
async def test_another_agent_and_an_unknown_session_are_404() -> None:
    async with keeping(BOOK) as bench:
        nonce = await suspend(bench)
        assert (await resume(bench, nonce, agent=OTHER)).error["code"] == "session-not-found"
        for unknown in (secrets.token_urlsafe(16), "a\u0000b"):
            reply = await bench.send("RESUME", "/", {"workflow_id": unknown, "resumption_nonce": nonce})
            assert (reply.status, reply.error["code"]) == (404, "session-not-found")
        assert (await resume(bench, nonce)).status == 200


@pytest.mark.requirement("METHODS-8.7-4")
async def test_a_wrong_nonce_and_a_session_that_is_not_suspended_are_409() -> None:
    async with keeping(BOOK) as bench:
        await bench.send("BOOK", "/room", session_id=SESSION)
        assert (await resume(bench, "x" * 22)).error["code"] == "session-not-suspended"
        nonce = await suspend(bench)
        assert (await resume(bench, nonce[::-1])).refusal == (409, "resumption-nonce-wrong")
        assert (await resume(bench, nonce)).status == 200


@pytest.mark.requirement("METHODS-8.7-4", "CORE-8-5")
async def test_a_session_that_has_expired_is_408() -> None:
    async with keeping(BOOK) as bench:
        await bench.store.do(BindSession(SESSION, AGENT, "", 600.0))
        await bench.store.do(SuspendSession(SESSION, AGENT, "", "susp-1", hash_nonce("n"), time.time() - 1))
        assert ((await resume(bench, "n")).status, (await resume(bench, "n")).error["code"]) == (408, "session-expired")


@pytest.mark.requirement("METHODS-8.7-1")
async def test_nonce_is_required_and_the_checkpoint_is_bounded() -> None:
    async with keeping(BOOK) as bench:
        assert (await bench.send("RESUME", "/", {"workflow_id": SESSION})).status == 422
        nonce = await suspend(bench, resume_by=write_instant(time.time() + 60))
        assert (await resume(bench, nonce, checkpoint="x" * MOST_CHECKPOINT)).status == 413
        assert (await resume(bench, nonce, agent="")).status == 400


MANAGER, STRANGER = "b" * 64, "c" * 64
DESK = Agent(agent_id=AGENT, name="desk", scopes=("booking:room",))
OPERATOR = Agent(agent_id=MANAGER, name="operator", scopes=("agents:manage",))
ROOM = make_endpoint("FETCH", "/room", echo)


def served(status: str = "active") -> Any:
    desk = Agent(agent_id=AGENT, name="desk", scopes=("booking:room",), status=status)
    return keeping(ROOM, agents=(desk, OPERATOR, Agent(agent_id=STRANGER, name="stranger")))


@pytest.fixture
async def bench() -> AsyncIterator[StatefulBench]:
    async with served() as made:
        yield made


async def change(bench: StatefulBench, method: str, agent: str | None = MANAGER, **more: Any) -> Any:
    """Send a lifecycle method about the desk, and let the server notice what became of it."""
    reply = await bench.send(method, "/", {"agent_id": AGENT, **more}, agent=agent)
    await bench.bench.server.agents.refresh()
    return reply


@pytest.mark.requirement("CORE-6.1-11", "CORE-7.4-4")
async def test_a_suspended_agent_is_refused_until_another_agent_reinstates_it(bench: StatefulBench) -> None:
    assert (await bench.send("FETCH", "/room")).status == 200
    done = await change(bench, "DEACTIVATE", reason="odd behaviour")
    assert done.json["result"] == {
        "agent_id": AGENT,
        "event_type": "DEACTIVATE",
        "previous_status": "active",
        "status": "suspended",
        "noop": False,
    }
    assert (await bench.send("FETCH", "/room")).refusal == (503, "agent-suspended")
    assert (await change(bench, "REINSTATE", agent=AGENT)).status == 503
    assert (await change(bench, "REINSTATE")).json["result"]["status"] == "active"
    assert (await bench.send("FETCH", "/room")).status == 200


@pytest.mark.requirement("CORE-3-6", "CORE-7.4-5")
async def test_a_revoked_agent_stays_revoked(bench: StatefulBench) -> None:
    assert (await change(bench, "REVOKE", reason="key lost")).json["result"]["status"] == "retired"
    gone = await bench.send("FETCH", "/room")
    assert (gone.status, gone.error["agent_status"]) == (410, "retired")
    assert gone.error["since"].startswith("20")
    for method in ("REINSTATE", "ACTIVATE", "DEACTIVATE", "DEPRECATE"):
        assert (await change(bench, method)).told("agent_status") == (409, "retired")


@pytest.mark.requirement("CORE-12-10")
async def test_to_revoke_takes_a_reason_and_a_known_agent(bench: StatefulBench) -> None:
    assert (await change(bench, "REVOKE")).status == 422
    assert (await bench.send("FETCH", "/room")).status == 200
    reply = await bench.send("DEACTIVATE", "/", {"agent_id": "9" * 64}, agent=MANAGER)
    assert (reply.status, reply.error["code"]) == (404, "agent-not-found")
    assert (await bench.send("DEACTIVATE", "/", {"agent_id": "nobody"}, agent=MANAGER)).status == 422


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[2J", "two\nlines", "\x9b31m", "end\n"])
@pytest.mark.parametrize("field", ["reason", "actor"])
async def test_texts_that_databases_or_terminals_alter_are_refused(bench: StatefulBench, field: str, text: str) -> None:
    assert (await change(bench, "DEACTIVATE", **{field: text})).refusal == (422, "input-validation-failed")
    assert (await bench.send("FETCH", "/room")).status == 200


async def test_a_pending_agent_acts_once_it_is_activated() -> None:
    async with served("pending") as bench:
        assert (await bench.send("FETCH", "/room")).status == 401
        assert (await change(bench, "ACTIVATE")).json["result"]["previous_status"] == "pending"
        assert (await bench.send("FETCH", "/room")).status == 200


@pytest.mark.requirement("CORE-12-11")
async def test_a_repeated_change_has_no_effect(bench: StatefulBench) -> None:
    for method in ("ACTIVATE", "REINSTATE"):
        result = (await change(bench, method)).json["result"]
        assert (result["noop"], result["previous_status"], result["status"]) == (True, "active", "active")
    assert await bench.store.read(ReadLifecycle(AGENT)) == []


@pytest.mark.requirement("CORE-12-12")
@pytest.mark.parametrize("method", ["DEACTIVATE", "DEPRECATE"])
async def test_an_agent_may_suspend_and_deprecate_itself(bench: StatefulBench, method: str) -> None:
    assert (await change(bench, method, agent=AGENT)).status == 200
    assert (await bench.send("FETCH", "/room")).status in (503, 410)


@pytest.mark.requirement("CORE-12-12")
@pytest.mark.parametrize("change_", CHANGES, ids=lambda one: one.method.name)
async def test_others_need_the_scope_for_it(change_: Any) -> None:
    method = change_.method.name
    async with served() as bench:
        stranger = await change(bench, method, agent=STRANGER, reason="because")
        assert (stranger.status, stranger.error["missing_scopes"]) == (455, ["agents:manage"])
        assert (await change(bench, method, agent=None, reason="because")).told("type") == (262, "credentials-missing")
        if not change_.by_itself:
            assert (await change(bench, method, agent=AGENT, reason="because")).status == 455
        assert (await bench.send("FETCH", "/room")).status == 200


async def test_actor_and_reason_are_recorded(bench: StatefulBench) -> None:
    await change(bench, "DEACTIVATE", reason="odd", actor="Alice")
    await change(bench, "REINSTATE")
    events = await bench.store.read(ReadLifecycle(AGENT))
    assert [(one.event, one.reason, one.actor) for one in events] == [
        ("DEACTIVATE", "odd", f"Alice, by {MANAGER}"),
        ("REINSTATE", "", MANAGER),
    ]


async def test_a_server_notices_changes_in_the_store(bench: StatefulBench) -> None:
    noticed = asyncio.Event()
    bench.bench.server.agents.watch(noticed.set)
    await bench.send("DEACTIVATE", "/", {"agent_id": AGENT}, agent=MANAGER)
    await asyncio.wait_for(noticed.wait(), 10)
    assert (await bench.send("FETCH", "/room")).status == 503


def test_without_a_store_the_methods_are_501() -> None:
    reply = build(agents=(OPERATOR,)).send("DEACTIVATE", "/", {"agent_id": AGENT}, agent_id=MANAGER)
    assert (reply.status, reply.error["missing"]) == (501, "a store to keep state in")


MODEL = {
    "ACTIVATE": {"pending": "active"},
    "DEACTIVATE": {"active": "suspended", "pending": "suspended"},
    "REINSTATE": {"suspended": "active"},
    "REVOKE": dict.fromkeys(("active", "pending", "suspended", "deprecated"), "retired"),
    "DEPRECATE": {"active": "deprecated", "suspended": "deprecated"},
}
"""What core 7.4 lets become of an agent."""
REACHED = {"ACTIVATE": "active", "DEACTIVATE": "suspended", "REINSTATE": "active", "REVOKE": "retired"}


@given(st.sampled_from(["active", "pending"]), st.lists(st.sampled_from(sorted(MODEL)), max_size=12))
@settings(max_examples=40)
def test_any_sequence_of_methods_follows_the_state_rules(begin: str, methods: list[str]) -> None:
    async def live() -> None:
        async with served(begin) as bench:
            state = begin
            for method in methods:
                reply = await change(bench, method, reason="because")
                wanted = REACHED.get(method, "deprecated")
                if state == wanted or state in MODEL[method]:
                    assert (reply.status, reply.json["result"]["noop"]) == (200, state == wanted)
                    state = wanted
                else:
                    assert (reply.status, reply.error["agent_status"]) == (409, state)
                assert bench.bench.server.agents.get(AGENT).status == state

    asyncio.run(live())
