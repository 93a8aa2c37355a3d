"""SUSPEND: a session is paused by its owner, and its nonce is known to nobody else."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.service import AGENT, Reply, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.protocol.exchange.instant import read_instant, write_instant
from bespeak.runtime.exchange import REPLAYED
from bespeak.runtime.methods.suspension import MOST_CHECKPOINT, hash_nonce
from bespeak.state.store.commands.proposals import PublishProposal
from bespeak.state.store.commands.sessions import BindSession, ReadSession, ResumeSession, SuspendSession
from bespeak.state.store.opening import open_store
from bespeak.state.store.settings import SessionSettings
from bespeak.state.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
SESSION = secrets.token_urlsafe(16)


async def suspended(bench: StatefulBench, agent: str = AGENT, **fields: Any) -> Reply:
    await bench.store.do(BindSession(SESSION, AGENT, "", 600.0))
    return await bench.send("SUSPEND", "/", {"session_id": SESSION, **fields}, agent=agent)


@pytest.mark.requirement("CORE-4.11-2", "CORE-4.11-3")
async def test_the_answer_has_everything_needed_to_resume() -> None:
    async with keeping() as bench:
        resume_by = write_instant(time.time() + 3600)
        reply = await suspended(bench, reason="awaiting_input", checkpoint={"step": [3]}, resume_by=resume_by)
        assert reply.status == 200
        result = reply.json["result"]
        assert result.keys() == {"suspension_id", "session_id", "resumption_nonce", "resume_by", "status"}
        assert (result["session_id"], result["status"], result["resume_by"]) == (SESSION, "suspended", resume_by)
        assert re.fullmatch(r"[A-Za-z0-9_-]{22}", result["resumption_nonce"])
        session = await bench.store.read(ReadSession(SESSION))
        assert (session.state, session.reason, session.checkpoint) == ("suspended", "awaiting_input", '{"step":[3]}')


async def test_only_the_hash_of_the_nonce_is_stored_and_it_resumes_the_session() -> None:
    async with keeping() as bench:
        nonce = (await suspended(bench, checkpoint=None)).json["result"]["resumption_nonce"]
        assert hash_nonce(nonce) == hashlib.sha256(nonce.encode()).hexdigest()
        done: Any = await bench.store.do(ResumeSession(SESSION, AGENT, "", hash_nonce(nonce), 60.0))
        assert (done[0].state, done[0].checkpoint) == ("active", "null")


@pytest.mark.requirement("CORE-4.11-3")
async def test_each_suspension_has_a_new_nonce() -> None:
    async with keeping() as bench:
        nonces = set()
        for _ in range(3):
            nonce = (await suspended(bench)).json["result"]["resumption_nonce"]
            nonces.add(nonce)
            await bench.store.do(ResumeSession(SESSION, AGENT, "", hash_nonce(nonce), 60.0))
        assert len(nonces) == 3


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01T00:00:00Z", "2020-01-01T00:00:00Z", "9" * 200])
async def test_an_invalid_or_past_time_is_400_and_does_not_suspend(text: str) -> None:
    async with keeping() as bench:
        reply = await suspended(bench, resume_by=text)
        assert (reply.status, reply.error["code"], reply.error["field"]) == (400, "invalid-time", "/resume_by")
        assert (await bench.store.read(ReadSession(SESSION))).state == "active"


@pytest.mark.parametrize("wish", [{}, {"resume_by": "2999-01-01T00:00:00Z"}])
async def test_a_session_stays_suspended_for_as_long_as_the_operator_allows_at_most(wish: dict[str, str]) -> None:
    async with keeping() as bench:
        bench.bench.server.sessions = SessionSettings(suspended=120)
        resume_by = read_instant((await suspended(bench, **wish)).json["result"]["resume_by"])
        assert resume_by == pytest.approx(time.time() + 120, abs=5)


@pytest.mark.requirement("CORE-4.11-6")
@pytest.mark.parametrize("session_id", ["no-such-session", "a\u0000b", "x" * 1000])
async def test_a_session_that_is_not_there_is_404(session_id: str) -> None:
    async with keeping() as bench:
        reply = await bench.send("SUSPEND", "/", {"session_id": session_id})
        assert (reply.status, reply.error["code"]) == (404, "session-not-found")


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


async def test_the_session_of_another_agent_is_404_too() -> None:
    async with keeping() as bench:
        reply = await suspended(bench, agent=OTHER)
        assert (reply.status, reply.error["code"]) == (404, "session-not-found")
        assert (await bench.store.read(ReadSession(SESSION))).state == "active"


async def test_a_suspended_session_cannot_be_suspended_again() -> None:
    async with keeping() as bench:
        await suspended(bench)
        reply = await bench.send("SUSPEND", "/", {"session_id": SESSION})
        assert (reply.status, reply.error["code"]) == (409, "session-suspended")


async def test_a_session_that_was_not_resumed_in_time_is_408() -> None:
    async with keeping() as bench:
        await bench.store.do(BindSession(SESSION, AGENT, "", 600.0))
        await bench.store.do(SuspendSession(SESSION, AGENT, "", "susp-1", hash_nonce("n"), time.time() - 1))
        reply = await bench.send("SUSPEND", "/", {"session_id": SESSION})
        assert (reply.status, reply.error["code"]) == (408, "session-expired")


async def test_a_checkpoint_is_bounded() -> None:
    async with keeping() as bench:
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


async def test_agent_releases_its_synthesis() -> None:
    async with negotiating() as bench:
        synthesis_id = (await bench.send("PROPOSE", "/", lodgings())).json["synthesis_id"]
        body = {"synthesis_id": synthesis_id}
        other = await bench.send("SUSPEND", "/", body, agent="b" * 64)
        assert (other.status, other.error["code"]) == (404, "synthesis-not-found")
        released = await bench.send("SUSPEND", "/", body)
        assert (released.status, released.json["result"]["synthesis_cleared"]) == (200, True)
        assert (await bench.send("FIND", "/lodgings", {"town": "Rome"})).status == 404
        assert (await bench.send("SUSPEND", "/", body)).status == 404


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


async def test_anonymous_caller_releases_its_synthesis_by_id() -> None:
    async with negotiating() as bench:
        synthesis_id = (await bench.send("PROPOSE", "/", lodgings(), agent=None)).json["synthesis_id"]
        assert (await bench.send("SUSPEND", "/", {"synthesis_id": synthesis_id})).status == 404
        assert (await bench.send("SUSPEND", "/", {"synthesis_id": synthesis_id}, agent=None)).status == 200


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


@pytest.mark.requirement("METHODS-8.7-2", "METHODS-8.7-3")
@pytest.mark.requirement("CORE-4.11-5", "CORE-8-4")
async def test_a_session_is_resumed_once_and_its_checkpoint_is_returned() -> None:
    async with keeping(BOOK) as bench:
        nonce = await suspend(bench, checkpoint={"step": 3})
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).error["code"] == "session-suspended"
        reply = await resume(bench, nonce)
        assert reply.status == 200
        receipt = reply.json["result"]
        assert (receipt["workflow_id"], receipt["status"], receipt["checkpoint"]) == (SESSION, "active", {"step": 3})
        assert (await bench.send("BOOK", "/room", session_id=SESSION)).status == 200
        again = await resume(bench, nonce)
        assert (again.status, again.error["code"]) == (409, "resumption-nonce-used")


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


@pytest.mark.requirement("METHODS-8.7-4")
@pytest.mark.requirement("CORE-8-5")
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
        wrong = await resume(bench, nonce[::-1])
        assert (wrong.status, wrong.error["code"]) == (409, "resumption-nonce-wrong")
        assert (await resume(bench, nonce)).status == 200


@pytest.mark.requirement("METHODS-8.7-4")
@pytest.mark.requirement("CORE-8-5")
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
