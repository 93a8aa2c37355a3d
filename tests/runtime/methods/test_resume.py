"""RESUME: a suspended session continues once, for its agent, with its nonce."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

import pytest
from tests.service import AGENT, Reply, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.methods.suspension import MOST_CHECKPOINT, hash_nonce
from bespeak.state.store.commands.sessions import BindSession, SuspendSession
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
SESSION = secrets.token_urlsafe(16)
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
