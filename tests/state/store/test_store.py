"""What every store promises, whichever database it is on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from tests.cases import rows

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.commands.idempotency import Claimed, ClaimKey, UseNonce
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import (
    Command,
    Conflict,
    Notify,
    Seal,
    Sealed,
    Statement,
    Steps,
    Store,
    Unit,
    run_command,
    run_unit,
)
from bespeak.state.store.transfer import CountRows

pytestmark = pytest.mark.anyio


class WriteAndRefuse(Command, frozen=True):
    guards: ClassVar[bool] = True

    def steps(self) -> Steps:
        yield Statement("INSERT INTO nonces (kind, value, expires) VALUES ('late', 'x', 0)")
        yield Notify("late")
        return Conflict("late")


class Broken(Command, frozen=True):
    def steps(self) -> Steps:
        yield Statement("SELECT nothing FROM nowhere")


async def test_unit_is_atomic(store: Store) -> None:
    assert await store.do(UseNonce("k", "a", 60), UseNonce("k", "b", 60)) == [True, True]
    assert await store.do(UseNonce("k", "c", 60), UseNonce("k", "a", 60)) == Conflict("nonce-used")
    assert await store.do(WriteAndRefuse()) == Conflict("late")
    with pytest.raises(StoreError):
        await store.do(UseNonce("k", "d", 60), Broken())
    assert await store.read(CountRows("nonces")) == 2


async def test_empty_unit_does_nothing_and_one_of_many_concurrent_claims_succeeds(store: Store) -> None:
    assert list(await store.do()) == []  # type: ignore[arg-type]
    outcomes = await asyncio.gather(*(store.do(UseNonce("k", "one", 60)) for _ in range(50)))
    assert sorted(map(str, outcomes)) == sorted([str([True])] + [str(Conflict("nonce-used"))] * 49)


async def test_commands_made_from_the_results_belong_to_the_same_transaction(store: Store) -> None:
    def then(results: Sequence[Any]) -> Sequence[Command]:
        assert results == [True]
        return [ClaimKey("s", "k", b"", 30, 60)]

    assert await store.do(UseNonce("k", "a", 60), then=then) == [True, Claimed(1)]
    refused = await store.do(UseNonce("k", "b", 60), then=lambda _: [UseNonce("k", "a", 60)])
    assert refused == Conflict("nonce-used")
    assert await store.read(CountRows("nonces")) == 1


async def test_a_failed_unit_leaves_the_store_in_order(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.do(Broken() if number % 5 == 0 else UseNonce("k", str(number), 60)) for number in range(50)),
        return_exceptions=True,
    )
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [number % 5 == 0 for number in range(50)]
    assert await store.read(CountRows("nonces")) == 40


async def test_closed_store_refuses_at_once(place: str) -> None:
    store = open_store(place)
    await store.start()
    await store.close()
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(store.do(UseNonce("k", "a", 60)), 10)
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(store.read(CountRows("nonces")), 10)
    await store.close()


async def test_committed_changes_are_visible_to_the_next_process(shared_place: str) -> None:
    for expected in ([True], Conflict("nonce-used")):
        store = open_store(shared_place)
        await store.start()
        assert await store.do(UseNonce("k", "a", 60)) == expected
        await store.close()


class Talk(Command, frozen=True):
    """Every kind of step."""

    def steps(self) -> Steps:
        rows = yield Statement("one", (1,))
        told = yield Notify("topic")
        sealed = yield Seal("agent", {"a": rows[0][0]})
        return rows, told, sealed.audit_id


class Say(Command, frozen=True):
    word: str

    def steps(self) -> Steps:
        yield from ()
        return self.word


class Refuse(Command, frozen=True):
    guards: ClassVar[bool] = True

    def steps(self) -> Steps:
        yield Notify("refused")
        return Conflict("no")


def execute(statement: Statement) -> list[tuple[Any, ...]]:
    return [(statement.sql, *statement.parameters)]


def seal(step: Seal) -> Sealed:
    return Sealed(f"id of {step.payload['a']}", "s", 1, step.agent_id, "")


async def unit(*commands: Command, then: Any = None) -> Unit:
    return Unit(commands, then, asyncio.get_running_loop().create_future())


def test_each_step_receives_its_result() -> None:
    topics: set[str] = set()
    assert run_command(Talk(), topics, execute, seal) == ([("one", 1)], None, "id of one")
    assert topics == {"topic"}


async def test_results_are_in_command_order_with_following_ones_last() -> None:
    seen: list[Sequence[Any]] = []

    def then(results: Sequence[Any]) -> Sequence[Command]:
        seen.append(list(results))
        return [Say("c"), Say("d")]

    assert run_unit(await unit(Say("a"), Say("b"), then=then), execute, seal) == ["a", "b", "c", "d"]
    assert seen == [["a", "b"]]


async def test_unit_without_commands_is_followed_a_conflict_ends_it_and_a_rollback_drops_topics() -> None:
    assert run_unit(await unit(then=lambda _: [Say("a")]), execute, seal) == ["a"]
    assert run_unit(await unit(), execute, seal) == []

    def then(_: Sequence[Any]) -> Sequence[Command]:
        raise AssertionError

    assert run_unit(await unit(Say("a"), Refuse(), Talk(), then=then), execute, seal) == Conflict("no")
    assert run_unit(await unit(Say("a"), then=lambda _: [Refuse()]), execute, seal) == Conflict("no")
    again = await unit(Talk())
    again.topics.add("of an earlier attempt")
    run_unit(again, execute, seal)
    assert again.topics == {"topic"}


@rows(
    "commands, then, needed",
    ((Say("a"),), None, False),
    ((Refuse(),), None, False),
    ((Refuse(), Say("a")), None, False),
    ((Say("a"), Refuse()), None, True),
    ((Say("a"),), lambda _: (), True),
)
async def test_a_savepoint_is_needed_where_a_conflict_may_follow_a_change(
    commands: tuple[Command, ...], then: Any, needed: bool
) -> None:
    assert (await unit(*commands, then=then)).needs_savepoint is needed


async def test_outcome_reaches_waiting_callers_and_skips_cancelled_ones() -> None:
    good, bad, gone = await unit(), await unit(), await unit()
    good.outcome, bad.outcome = ["a"], ValueError("b")
    gone.future.cancel()
    for each in (good, bad, gone):
        each.settle()
    assert await good.future == ["a"]
    with pytest.raises(ValueError, match="b"):
        await bad.future
    assert gone.future.cancelled()
