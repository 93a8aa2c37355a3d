"""Cases in the store: one for each question, decided once, a confirmation used once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.state.store.conftest import started
from tests.state.store.single import only, reason

from bespeak.extensions.messages.store import ClaimOutbox, PutOutbox
from bespeak.state.store.commands.cases import (
    ESCALATION,
    KINDS,
    DecideCase,
    FindPausedTask,
    ListCases,
    ListPausedTasks,
    OpenCase,
    PausedTask,
    PauseTask,
    ReadCase,
    UseCase,
)
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

AGENT, DESK, OTHER = "a" * 64, "d" * 64, "b" * 64


class TimePasses(Command, frozen=True):
    """Puts the end of a case into the past."""

    case_id: str

    def steps(self) -> Steps:
        yield Statement("UPDATE cases SET expires = 1 WHERE case_id = ?", (self.case_id,))


def ask(case_id: str = "c1", kind: str = "confirmation", digest: str = "d1", **fields: Any) -> OpenCase:
    given: dict[str, Any] = {"agent_id": AGENT, "recipient": DESK, "subject": '{"price":  9}', "lifetime": 60.0}
    return OpenCase(case_id=case_id, kind=kind, digest=digest, **{**given, **fields})


def decide(status: str = "accepted", by: str = DESK, attestation_id: str = "att-1", **fields: Any) -> DecideCase:
    return DecideCase("c1", status, by, attestation_id, **fields)


def use(digest: str = "d1", agent: str = AGENT, **fields: Any) -> UseCase:
    return UseCase("c1", digest, agent, **fields)


async def test_case_is_read_back_unchanged(store: Store) -> None:
    opened = await only(store, ask(deadline=2e9))
    assert opened.new
    case = await store.read(ReadCase("c1"))
    assert case == opened.case
    assert (case.state, case.subject, case.deadline, case.recipient) == ("pending", '{"price":  9}', 2e9, DESK)
    assert case.expires - case.created == pytest.approx(60, abs=1)
    assert await store.read(ReadCase("c2")) is None


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_question_is_one_case_while_it_is_open(store: Store, kind: str) -> None:
    await store.do(ask(kind=kind))
    again = await only(store, ask("c2", kind))
    assert (again.case.case_id, again.new) == ("c1", False)
    await store.do(decide("deferred", kinds=KINDS))
    assert (await only(store, ask("c3", kind))).case.case_id == "c1"
    await store.do(decide("rejected", kinds=KINDS))
    assert (await only(store, ask("c4", kind))).case.case_id == "c4"


@pytest.mark.parametrize(
    "fields", [{"digest": "d2"}, {"agent_id": OTHER}, {"kind": "escalation"}], ids=["content", "agent", "kind"]
)
async def test_another_question_is_another_case(store: Store, fields: dict[str, Any]) -> None:
    await store.do(ask())
    assert (await only(store, ask("c2", **fields))).new


async def test_an_accepted_confirmation_waits_to_be_used_and_an_accepted_escalation_is_over(store: Store) -> None:
    await store.do(ask())
    await store.do(decide())
    again = await only(store, ask("c2"))
    assert (again.case.case_id, again.case.state) == ("c1", "accepted")
    await store.do(use())
    assert (await only(store, ask("c3"))).new
    await store.do(ask("e1", "escalation"))
    await store.do(DecideCase("e1", "accepted", DESK, "att-2"))
    assert (await only(store, ask("e2", "escalation"))).new


async def test_expired_question_opens_a_new_case(store: Store) -> None:
    await store.do(ask(lifetime=0.0))
    assert (await store.read(ReadCase("c1"))).state == "expired"
    assert await reason(store, decide()) == "expired"
    assert await reason(store, use()) == "expired"
    assert (await only(store, ask("c2"))).new
    assert (await store.read(ReadCase("c1"))).state == "expired"


async def test_an_acceptance_expires_too(store: Store) -> None:
    await store.do(ask())
    await store.do(decide())
    await store.do(TimePasses("c1"))
    assert await reason(store, use()) == "expired"
    assert (await only(store, ask("c2"))).new


async def test_announcement_is_stored_once_with_its_case(store: Store) -> None:
    announcement = PutOutbox("escalation", DESK, "{}")
    await store.do(ask(announcement=announcement))
    await store.do(ask("c2", announcement=announcement))
    messages = await only(store, ClaimOutbox("escalation", 10, 60.0))
    assert len(messages) == 1


async def test_the_same_question_to_two_processes_at_once_is_one_case(first: Store, second: Store) -> None:
    await asyncio.gather(*((first, second)[n % 2].do(ask(f"c{n}")) for n in range(16)))
    assert len(await first.read(ListCases())) == 1


async def test_decision_is_recorded_with_actor_and_reason(store: Store) -> None:
    await store.do(ask())
    case = await only(store, decide("rejected", reason="too dear", attestation='"signed"'))
    assert case == await store.read(ReadCase("c1"))
    assert (case.state, case.decided_by, case.reason, case.attestation) == ("rejected", DESK, "too dear", '"signed"')
    assert case.decided_at >= case.created


@pytest.mark.parametrize("status", ["accepted", "rejected"])
async def test_a_decision_is_final(store: Store, status: str) -> None:
    await store.do(ask())
    first = await only(store, decide(status))
    other = {"accepted": "rejected", "rejected": "accepted"}[status]
    for second in (decide(other), decide("deferred"), decide(status, OTHER, kinds=KINDS)):
        conflict = await only(store, second)
        assert (conflict.reason, conflict.details["status"]) == ("already-decided", status)
        assert conflict.details["attestation_id"] == "att-1"
    assert await only(store, decide(status, attestation_id="att-2")) == first


async def test_deferred_case_can_be_decided(store: Store) -> None:
    await store.do(ask())
    assert (await only(store, decide("deferred"))).state == "deferred"
    assert await reason(store, use()) == "pending"
    assert (await only(store, decide("accepted", attestation_id="att-2"))).attestation_id == "att-2"


@pytest.mark.parametrize("by", [AGENT, OTHER])
async def test_only_the_recipient_decides_and_never_the_requester(store: Store, by: str) -> None:
    await store.do(ask())
    assert await reason(store, decide(by=by)) == ("own-case" if by == AGENT else "not-permitted")


async def test_right_for_the_kind_lets_an_agent_decide_for_the_recipient_and_not_for_its_delegator(
    store: Store,
) -> None:
    await store.do(ask())
    assert await reason(store, decide(by=OTHER, kinds=("escalation",))) == "not-permitted"
    assert (await only(store, decide(by=OTHER, kinds=("confirmation",)))).decided_by == OTHER
    await store.do(ask())
    assert await reason(store, decide(by=OTHER, kinds=KINDS, parties=(DESK, AGENT))) == "own-case"


async def test_decider_shares_no_party_with_the_request(store: Store) -> None:
    await store.do(ask(parties=(AGENT, "key:1", "usr-ann")))
    for parties in (("usr-ann",), ("key:2", "key:1"), (AGENT,)):
        assert await reason(store, decide(by=OTHER, kinds=KINDS, parties=parties)) == "own-case"
    await store.do(decide(by=OTHER, kinds=KINDS, parties=("usr-bob",)))
    assert await reason(store, use(parties=("usr-bob",))) == "own-case"
    assert (await only(store, use(parties=("usr-ann",)))).state == "executed"


class FromBefore(Command, frozen=True):
    """Removes what earlier releases did not record."""

    def steps(self) -> Steps:
        yield Statement("UPDATE cases SET parties = NULL")


async def test_case_from_before_parties_were_recorded_is_decided_by_another_agent(store: Store) -> None:
    await store.do(ask(), FromBefore())
    assert await reason(store, decide(by=AGENT)) == "own-case"
    assert (await only(store, decide())).state == "accepted"


async def test_confirmation_is_used_once_by_its_agent_for_its_call(store: Store) -> None:
    assert await reason(store, use()) == "not-found"
    await store.do(ask())
    assert await reason(store, use()) == "pending"
    await store.do(decide())
    assert await reason(store, use(agent=OTHER)) == "of-another"
    assert await reason(store, use("d2")) == "digest-differs"
    assert (await only(store, use())).state == "executed"
    assert await reason(store, use()) == "used"
    assert await reason(store, decide("rejected")) == "already-decided"


async def test_rejected_confirmation_and_escalation_permit_no_call(store: Store) -> None:
    await store.do(ask())
    await store.do(decide("rejected", reason="no"))
    conflict = await only(store, use())
    assert (conflict.reason, conflict.details["reason"]) == ("rejected", "no")
    await store.do(ask("e1", "escalation"))
    await store.do(DecideCase("e1", "accepted", DESK, "att"))
    assert await reason(store, UseCase("e1", "d1", AGENT)) == "not-found"


async def test_one_of_many_concurrent_calls_uses_the_confirmation(first: Store, second: Store) -> None:
    await first.do(ask())
    await first.do(decide())
    outcomes = await asyncio.gather(*((first, second)[n % 2].do(use()) for n in range(16)))
    assert sum(not isinstance(outcome, Conflict) for outcome in outcomes) == 1


async def test_cases_are_listed_by_state_in_order_up_to_a_limit(store: Store) -> None:
    for n in range(5):
        await store.do(ask(f"c{n}", digest=f"d{n}", lifetime=0.0 if n == 4 else 60.0))
    await store.do(decide())
    assert [case.case_id for case in await store.read(ListCases())] == ["c0", "c1", "c2", "c3", "c4"]
    assert [case.case_id for case in await store.read(ListCases("pending", 2))] == ["c0", "c2"]
    assert [case.case_id for case in await store.read(ListCases("expired"))] == ["c4"]
    assert [case.case_id for case in await store.read(ListCases("accepted"))] == ["c1"]


async def test_ended_confirmations_are_purged_and_escalations_are_not(store: Store) -> None:
    await store.do(ask(lifetime=-100.0))
    await store.do(ask("e1", "escalation", lifetime=None))
    assert await only(store, PurgeExpired(kept=1000.0)) == 0
    assert await only(store, PurgeExpired(kept=50.0)) == 1
    assert [case.case_id for case in await store.read(ListCases())] == ["e1"]


async def test_cases_survive_a_restart(shared_place: str) -> None:
    async for store in started(shared_place):
        await store.do(ask())
        await store.do(ask("e1", "escalation", announcement=PutOutbox("escalation", DESK, "{}")))
        await store.do(decide())
    async for store in started(shared_place):
        assert [case.state for case in await store.read(ListCases())] == ["accepted", "pending"]
        assert (await only(store, use())).state == "executed"
        assert len(await only(store, ClaimOutbox("escalation", 10, 60.0))) == 1


async def test_number_of_open_cases_per_agent_is_limited(store: Store) -> None:
    await store.do(*(ask(f"c{number}", digest=f"d{number}", most_open=3) for number in range(3)))
    one_more = ask("one-more", digest="one more", most_open=3)
    assert await store.do(one_more) == Conflict("too-many", {"most": 3})
    same = await store.do(ask("same", digest="d2", most_open=3))
    assert not isinstance(same, Conflict)
    assert same[0].case.case_id == "c2", "what was asked before is still answered"
    await store.do(DecideCase("c0", "rejected", DESK, "att", kinds=("confirmation",)))
    assert (await store.do(one_more))[0].new


A, B = "a" * 64, "b" * 64


def escalation(case_id: str, *agents: str, task_id: str = "t") -> OpenCase:
    pause = PauseTask(case_id, task_id, agents)
    return OpenCase(case_id, ESCALATION, A, "desk", f"digest of {case_id}", "{}", pause=pause)


def decision(case_id: str, status: str) -> DecideCase:
    return DecideCase(case_id, status, "desk", f"att-{case_id}", reason="because")


class AgeStopped(Command, frozen=True):
    """Let the retention of stopped tasks pass."""

    def steps(self) -> Steps:
        yield Statement("UPDATE paused_tasks SET expires = {now} - 1 WHERE expires < {now} + 1e10")


async def states(store: Store) -> list[tuple[str, str]]:
    listed: list[PausedTask] = await store.read(ListPausedTasks(10))
    return sorted((task.case_id, task.state) for task in listed)


async def test_a_task_is_paused_for_all_its_agents_until_the_case_is_accepted(store: Store) -> None:
    await store.do(escalation("esc-1", A, B, A))
    for agent in (A, B):
        paused = await store.read(FindPausedTask("t", ("c" * 64, agent)))
        assert paused == PausedTask(agent, "t", "esc-1", "desk", "pending", None)
    assert await store.read(FindPausedTask("t", ("c" * 64,))) is None
    assert await store.read(FindPausedTask("other", (A,))) is None
    await store.do(decision("esc-1", "deferred"))
    assert await states(store) == [("esc-1", "deferred"), ("esc-1", "deferred")]
    await store.do(decision("esc-1", "accepted"))
    assert await states(store) == []


async def test_each_case_of_a_task_has_to_be_decided(store: Store) -> None:
    await store.do(escalation("esc-1", A))
    await store.do(escalation("esc-2", A))
    await store.do(decision("esc-1", "accepted"))
    assert await states(store) == [("esc-2", "pending")]


async def test_a_rejected_task_stays_stopped_until_it_is_removed(store: Store) -> None:
    await store.do(escalation("esc-1", A))
    await store.do(escalation("esc-2", A, task_id="u"))
    await store.do(decision("esc-1", "rejected"))
    stopped: Any = await store.read(FindPausedTask("t", (A,)))
    assert (stopped.state, stopped.reason) == ("rejected", "because")
    await store.do(PurgeExpired())
    assert await states(store) == [("esc-1", "rejected"), ("esc-2", "pending")]
    await store.do(AgeStopped())
    assert await states(store) == [("esc-2", "pending")]
    assert await store.do(PurgeExpired()) == [1]
