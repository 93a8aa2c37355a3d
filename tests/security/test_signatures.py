"""Signed requests over real sockets: each signature is good once, whichever process sees it and whenever."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.postgres import PostgresServer
from tests.process import bespeak
from tests.security.guarded import Agent, Answer, Guarded, Line, ask

pytestmark = pytest.mark.process
PATIENCE = 30.0
MANY = 12
LOOKS = 24
"""Connections among which two workers have both got some."""


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path / "seats", "signed")


def code_of(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


@pytest.mark.requirement("CORE-10.1-8")
def test_a_signature_is_accepted_once_even_after_a_restart(guarded: Guarded) -> None:
    agent = guarded.new_agent("desk")
    headers = agent.signed()
    with guarded.serving() as served:
        answer = ask(served, headers)
        assert (answer.status, answer.json["agent"], answer.json["verified"]) == (200, agent.agent_id, "signed")
        assert code_of(ask(served, headers)) == (401, "signature-replayed")
        assert ask(served, agent.signed()).status == 200
        served.process.kill()
        served.process.wait(20)
    with guarded.serving() as served:
        assert code_of(ask(served, headers)) == (401, "signature-replayed")
        assert ask(served, agent.signed()).status == 200


@pytest.mark.requirement("CORE-10.1-8")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_used_signature_is_refused_by_all_workers(guarded: Guarded, store: str, request: pytest.FixtureRequest) -> None:
    if store == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        guarded.store = server.new_database()
    agent = guarded.new_agent("desk")
    headers = agent.signed()
    with guarded.serving("--workers", "2") as served:
        found = [code_of(ask(served, headers)) for _ in range(LOOKS)]
    assert (found.count((401, "signature-replayed")), found[0][0]) == (LOOKS - 1, 200)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_of_many_that_use_a_signature_at_the_same_moment_one_is_served(guarded: Guarded, workers: str) -> None:
    agent = guarded.new_agent("desk")
    with guarded.serving("--workers", workers) as served, ThreadPoolExecutor(MANY) as pool:
        for _ in range(5):
            headers, start = agent.signed(), Barrier(MANY)

            def use(headers: dict[str, str] = headers, start: Barrier = start) -> tuple[int, str]:
                with Line(served.port) as line:
                    start.wait(PATIENCE)
                    return code_of(line.ask(headers=headers))

            found = sorted(use.result(PATIENCE) for use in [pool.submit(use) for _ in range(MANY)])
            assert found == [(200, ""), *[(401, "signature-replayed")] * (MANY - 1)]


@pytest.mark.parametrize("method", ["DISCOVER", "DESCRIBE"])
def test_a_signature_is_used_up_by_a_request_that_changes_nothing(guarded: Guarded, method: str) -> None:
    agent = guarded.new_agent("desk")
    headers = agent.signed(method, "/")
    with guarded.serving() as served:
        assert ask(served, headers, method=method, target="/").code != "signature-replayed"
        assert code_of(ask(served, headers, method=method, target="/")) == (401, "signature-replayed")


def test_a_modified_signed_request_is_refused(guarded: Guarded) -> None:
    desk, other = guarded.new_agent("desk"), guarded.new_agent("other")
    stranger = Agent("e" * 64, desk.file)
    body = b'{"a": 1}'
    forged = {
        "by the key of another": {**Agent(other.agent_id, desk.file).signed()},
        "in the name of another": {**desk.signed(), "agent-id": other.agent_id},
        "for another server": desk.signed(audience="other.example"),
        "for another method": desk.signed("FETCH"),
        "for another target": desk.signed(target="/seat?x=1"),
        "for another body": desk.signed(body=b'{"a": 2}'),
        "without the scope that is sent": {**desk.signed(), "authority-scope": "booking:seat"},
        "with a scope that is not sent": {
            name: value
            for name, value in desk.signed(authority_scope="booking:seat").items()
            if name != "authority-scope"
        },
        "with another key of idempotency": {**desk.signed(idempotency_key="a"), "idempotency-key": "b"},
        "long ago": desk.signed(age=3600),
        "in the future": desk.signed(age=-3600),
        "by a stranger": stranger.signed(),
        "cut off": {**desk.signed(), "agent-signature": desk.signed()["agent-signature"][:-4]},
        "empty": {**desk.signed(), "agent-signature": ""},
        "nothing": {"agent-id": desk.agent_id},
    }
    with guarded.serving() as served:
        for name, headers in forged.items():
            given = body if name == "for another body" else b""
            answer = ask(served, headers, given)
            assert answer.status == 401, (name, answer)
            assert answer.code.startswith(("signature-", "agent-")), (name, answer)
        assert ask(served, desk.signed()).status == 200


def test_an_agent_revoked_at_run_time_can_no_longer_authenticate(guarded: Guarded) -> None:
    agent = guarded.new_agent("desk")
    with guarded.serving() as served:
        assert ask(served, agent.signed()).status == 200
        options = ("--store", guarded.store, "--reason", "its key was stolen")
        revoked = bespeak("agents", "revoke", agent.agent_id, str(guarded.folder), *options)
        assert revoked.returncode == 0, revoked.stderr
        end = time.monotonic() + PATIENCE
        while (answer := ask(served, agent.signed())).status == 200 and time.monotonic() < end:
            pass
        assert answer.status in (401, 410)
