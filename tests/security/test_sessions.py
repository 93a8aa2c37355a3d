"""Sessions over real sockets: the id of a session is useless to other agents."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from tests.security.guarded import AGENT, Guarded, Line, ask, bearer, trusting
from tests.state.identity.issuer import OTHER

from bespeak.state.store.commands.sessions import ResumeSession, Session
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.process
LOOKS = 12


@pytest.mark.requirement("CORE-8-2", "CORE-6.1-2")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_session_of_another_agent_is_refused_by_every_worker_and_after_a_restart(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    guarded = Guarded(tmp_path, "token")
    if store == "postgres":
        guarded.store = request.getfixturevalue("postgres_server").new_database()
    session = secrets.token_hex(16)
    mine = bearer(guarded.token(), Session_ID=session)
    other = bearer(guarded.token(agent_id=OTHER), Session_ID=session)
    for _ in range(2):
        with guarded.serving("--workers", "2") as served:
            assert ask(served, mine).status == 200
            for _ in range(LOOKS):
                answer = ask(served, other)
                assert (answer.status, answer.code) == (403, "session-of-another")
                assert AGENT not in answer.body.decode()
            assert ask(served, mine).status == 200
            assert served.stop() == 0


@pytest.mark.requirement("CORE-8-2")
def test_a_session_is_bound_to_the_certificate_it_began_with(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, "mtls", "token")
    session = secrets.token_hex(16)
    headers = bearer(guarded.token(), Session_ID=session)
    first, second = (guarded.authority.client(name, uris=[f"agtp://{AGENT}"]) for name in ("first", "second"))
    with guarded.serving() as served:
        for pair, status in ((first, 200), (second, 403), (None, 403), (first, 200)):
            with Line(served.port, trusting(guarded, *(pair or ()))) as line:
                assert line.ask(headers=headers).status == status


@pytest.mark.requirement("CORE-8-4", "CORE-4.11-3")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_nonce_of_a_suspended_session_works_once(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    guarded = Guarded(tmp_path, "token")
    if store == "postgres":
        guarded.store = request.getfixturevalue("postgres_server").new_database()
    session = secrets.token_hex(16)
    mine = bearer(guarded.token(), Session_ID=session)
    with guarded.serving() as served:
        assert ask(served, mine).status == 200
        body = json.dumps({"session_id": session, "checkpoint": {"step": 3}}).encode()
        stranger = bearer(guarded.token(agent_id=OTHER))
        assert ask(served, stranger, body, method="SUSPEND", target="/").status == 404
        suspended = ask(served, bearer(guarded.token()), body, method="SUSPEND", target="/")
        assert suspended.status == 200, suspended
        nonce = suspended.json["result"]["resumption_nonce"]
        assert len(nonce) >= 22
        assert (ask(served, mine).status, ask(served, mine).code) == (409, "session-suspended")
        assert served.stop() == 0
    found = asyncio.run(_resume(guarded.store, session, nonce))
    assert [outcome.reason if isinstance(outcome, Conflict) else type(outcome[0]) for outcome in found] == [
        *("nonce-wrong", "not-found", Session, "nonce-used")
    ]


async def _resume(place: str, session: str, nonce: str) -> list[Any]:
    """Resume with a wrong nonce, by another agent, correctly, and once more; return the answers."""
    store = open_store(place)
    await store.start()
    try:
        return [
            await store.do(ResumeSession(session, agent, "", hashlib.sha256(given.encode()).hexdigest(), 60.0))
            for agent, given in ((AGENT, "x" * 22), (OTHER, nonce), (AGENT, nonce), (AGENT, nonce))
        ]
    finally:
        await store.close()
