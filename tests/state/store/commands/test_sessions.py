"""Sessions in the store: bound to one agent, suspended with a checkpoint, resumed once."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.state.store.conftest import started
from tests.state.store.single import ReadSession, only, reason

from bespeak.state.store.commands.sessions import (
    BindSession,
    ResumeSession,
    SuspendSession,
)
from bespeak.state.store.store import Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

AGENT, OTHER = "a" * 64, "b" * 64


def bind(agent: str = AGENT, tls: str = "", idle: float = 60.0, **fields: Any) -> BindSession:
    return BindSession("s", agent, tls, idle, **fields)


def suspend(agent: str = AGENT, tls: str = "", seconds: float = 600.0, **fields: Any) -> SuspendSession:
    return SuspendSession("s", agent, tls, "susp-1", "hash", time.time() + seconds, **fields)


def resume(nonce: str = "hash", agent: str = AGENT, tls: str = "", **fields: Any) -> ResumeSession:
    return ResumeSession("s", agent, tls, nonce, 60.0, **fields)


@pytest.mark.requirement("CORE-8-2")
async def test_session_belongs_to_its_first_agent(store: Store) -> None:
    assert await only(store, bind(tls="cert")) == "active"
    assert await only(store, bind(tls="cert")) == "active"
    assert await reason(store, bind(OTHER, tls="cert")) == "of-another"
    assert await reason(store, bind(tls="another cert")) == "of-another"
    assert await reason(store, bind()) == "of-another"


async def test_using_a_session_prolongs_it(store: Store) -> None:
    await store.do(bind(idle=60.0))
    before = await store.read(ReadSession("s"))
    await store.do(bind(idle=600.0))
    after = await store.read(ReadSession("s"))
    assert after.created == before.created
    assert after.expires > before.expires + 500


async def test_idle_session_restarts_only_for_its_agent_until_it_is_purged(store: Store) -> None:
    await store.do(bind(tls="old cert", idle=0.0))
    assert await store.read(ReadSession("s")) is None
    assert await reason(store, bind(OTHER)) == "of-another"
    assert await only(store, bind(tls="new cert", idle=0.0)) == "active"
    await store.do(PurgeExpired())
    assert await only(store, bind(OTHER)) == "active"


async def test_restarted_session_has_no_old_state(store: Store) -> None:
    await store.do(bind())
    await store.do(suspend(checkpoint="1"))
    await store.do(resume())
    await store.do(bind(idle=0.0))
    await store.do(bind())
    session = await store.read(ReadSession("s"))
    assert (session.checkpoint, session.suspension_id, session.resume_by) == (None, None, None)
    assert await reason(store, resume()) == "not-suspended"


async def test_suspended_session_accepts_only_its_resumption(store: Store) -> None:
    await store.do(bind())
    assert await only(store, suspend(reason="awaiting_input", checkpoint='{"step": 3}')) is True
    conflict = await only(store, bind())
    assert conflict.reason == "suspended"
    assert conflict.details["resume_by"] > time.time()
    assert await only(store, bind(tls="new cert", resuming=True)) == "suspended"
    assert await reason(store, bind(OTHER, resuming=True)) == "of-another"
    assert await reason(store, suspend()) == "suspended"


@pytest.mark.requirement("CORE-4.11-5", "CORE-8-4")
async def test_nonce_resumes_once_and_returns_the_checkpoint(store: Store) -> None:
    await store.do(bind())
    await store.do(suspend(checkpoint='{"step": 3}'))
    assert await reason(store, resume("other hash")) == "nonce-wrong"
    resumed = await only(store, resume(tls="new cert"))
    assert (resumed.state, resumed.checkpoint, resumed.tls_identity) == ("active", '{"step": 3}', "new cert")
    assert await reason(store, resume()) == "nonce-used"
    assert await reason(store, resume("other hash")) == "not-suspended"
    assert await only(store, bind(tls="new cert")) == "active"


async def test_a_checkpoint_can_be_replaced_when_resuming(store: Store) -> None:
    await store.do(bind())
    await store.do(suspend(checkpoint="1"))
    assert (await only(store, resume(checkpoint="2"))).checkpoint == "2"


@pytest.mark.requirement("CORE-8-4")
async def test_one_of_two_processes_resumes(first: Store, second: Store) -> None:
    await first.do(bind())
    await first.do(suspend())
    assert (await only(first, resume())).state == "active"
    assert await reason(second, resume()) == "nonce-used"


@pytest.mark.requirement("CORE-4.11-4")
async def test_a_session_that_was_not_resumed_in_time_has_expired(store: Store) -> None:
    await store.do(bind())
    await store.do(suspend(seconds=-1.0))
    assert await reason(store, bind()) == "expired"
    assert await reason(store, resume()) == "expired"
    await store.do(PurgeExpired())
    assert await reason(store, resume()) == "expired"


async def test_session_of_another_agent_is_not_disclosed(store: Store) -> None:
    await store.do(bind(tls="cert"))
    assert await reason(store, suspend(OTHER, tls="cert")) == "not-found"
    assert await reason(store, suspend(tls="another cert")) == "not-found"
    await store.do(suspend(tls="cert"))
    assert await reason(store, resume(agent=OTHER)) == "not-found"


async def test_unknown_sessions_are_not_found(store: Store) -> None:
    assert await reason(store, suspend()) == "not-found"
    assert await reason(store, resume()) == "not-found"
    assert await store.read(ReadSession("s")) is None


async def test_a_suspended_session_survives_a_restart(shared_place: str) -> None:
    async for store in started(shared_place):
        await store.do(bind())
        await store.do(suspend(checkpoint='{"step": 3}', reason="scheduled_pause"))
    async for store in started(shared_place):
        session = await store.read(ReadSession("s"))
        assert (session.state, session.reason, session.suspension_id) == ("suspended", "scheduled_pause", "susp-1")
        assert (await only(store, resume())).checkpoint == '{"step": 3}'
