"""Confirmations and cases over real sockets and kills: decided once, by an authorized agent, for exactly that
request.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.process import Served
from tests.security.guarded import Answer, Guarded, Line, ask, bearer
from tests.state.identity.issuer import OTHER

pytestmark = pytest.mark.process
MANY = 12
PATIENCE = 30.0
DECIDER = "d" * 64


@pytest.fixture(params=["sqlite", "postgres"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Guarded:
    found = Guarded(tmp_path / "seats", "token", more="[policies]\nconfirm_irreversible = true\n")
    if request.param == "postgres":
        found.store = request.getfixturevalue("postgres_server").new_database()
    return found


def decide(guarded: Guarded, served: Served, case: str, status: str = "accepted", agent: str = DECIDER) -> Answer:
    scope = "confirmation:decide escalation:confirm"
    body = json.dumps({"target_id": case, "status": status}).encode()
    return ask(served, bearer(guarded.token(agent_id=agent, scope=scope)), body, method="CONFIRM", target="/")


def confirmed(guarded: Guarded, served: Served) -> str:
    """Return the id of a confirmation that was given."""
    asked = ask(served, bearer(guarded.token()))
    assert (asked.status, asked.code) == (262, "confirmation-required")
    case = str(asked.json["error"]["confirmation_id"])
    assert decide(guarded, served, case).status == 200
    return case


def kill(served: Served) -> None:
    served.process.kill()
    served.process.wait(PATIENCE)


def test_a_confirmation_outlives_kills_and_is_good_for_one_call(guarded: Guarded) -> None:
    with guarded.serving() as served:
        asked = ask(served, bearer(guarded.token()))
        case = str(asked.json["error"]["confirmation_id"])
        kill(served)
    with guarded.serving() as served:
        own = decide(guarded, served, case, agent="ab" * 32)
        assert (own.status, own.code) == (403, "own-case")
        assert decide(guarded, served, case).status == 200
        kill(served)
    with guarded.serving() as served:
        assert decide(guarded, served, case, "rejected").code == "already-decided"
        stolen = ask(served, bearer(guarded.token(agent_id=OTHER), Confirmation_ID=case))
        assert (stolen.status, stolen.code) == (404, "confirmation-not-found")
        call = bearer(guarded.token(), Confirmation_ID=case, Idempotency_Key="k-1")
        first = ask(served, call)
        assert first.status == 200
        kill(served)
    with guarded.serving() as served:
        again = ask(served, call)
        assert (again.status, again.body) == (200, first.body)
        other = ask(served, bearer(guarded.token(), Confirmation_ID=case))
        assert (other.status, other.code) == (409, "confirmation-used")


def test_of_many_that_use_a_confirmation_at_the_same_moment_one_is_served(guarded: Guarded) -> None:
    with guarded.serving("--workers", "2") as served, ThreadPoolExecutor(MANY) as pool:
        headers = bearer(guarded.token(), Confirmation_ID=confirmed(guarded, served))
        start = Barrier(MANY)

        def use() -> tuple[int, str]:
            with Line(served.port) as line:
                start.wait(PATIENCE)
                answer = line.ask(headers=headers)
                return answer.status, answer.code

        found = sorted(future.result(PATIENCE) for future in [pool.submit(use) for _ in range(MANY)])
    assert found == [(200, ""), *[(409, "confirmation-used")] * (MANY - 1)]


def test_a_confirmed_call_that_is_killed_on_its_way_does_not_run_twice(guarded: Guarded, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with guarded.serving(DIES_AT=str(runs)) as served:
        headers = bearer(guarded.token(), Confirmation_ID=confirmed(guarded, served), Idempotency_Key="k-1")
        with pytest.raises(ConnectionError):
            ask(served, headers)
    with guarded.serving() as served:
        # Whether it had an effect nobody knows, so that somebody has to decide anew.
        answer = ask(served, headers)
        assert answer.status == 409, answer
    assert runs.read_text() == "run\n"


def test_an_escalation_outlives_a_kill_and_is_decided_once(guarded: Guarded) -> None:
    with guarded.serving() as served:
        body = json.dumps({"task_id": "t", "reason": "ethical_flag", "context": {"seat": 7}}).encode()
        asked = ask(served, bearer(guarded.token()), body, method="ESCALATE", target="/")
        assert asked.status == 202, asked
        case = str(asked.json["result"]["escalation_id"])
        kill(served)
    with guarded.serving() as served:
        same = ask(served, bearer(guarded.token()), body, method="ESCALATE", target="/")
        assert same.json["result"]["escalation_id"] == case
        assert decide(guarded, served, case, agent="ab" * 32).code == "own-case"
        assert decide(guarded, served, case).status == 200
        kill(served)
    with guarded.serving() as served:
        assert decide(guarded, served, case, "rejected").code == "already-decided"
