"""Turns go round the owners, so that nobody waits behind all that another has asked for."""

from __future__ import annotations

import asyncio

import pytest

from bespeak.runtime.concurrency import Pace, Turns

pytestmark = pytest.mark.anyio


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_owners_take_turns_in_rotation() -> None:
    turns, served = Turns(1, most=100, most_of_one=10), []

    async def work(owner: str) -> None:
        async with turns.take(owner):
            await asyncio.sleep(0)
            served.append(owner)

    await asyncio.gather(*map(work, "aaaabc"))
    assert "".join(served) == "abcaaa"


async def test_those_who_wait_are_bounded_for_one_and_for_all() -> None:
    turns = Turns(1, most=3, most_of_one=2)

    async def hold(owner: str) -> None:
        async with turns.take(owner):
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(hold(owner)) for owner in "xaa"]
    await settle()
    assert (turns.has_room("a"), turns.has_room("b")) == (False, True)
    tasks.append(asyncio.create_task(hold("b")))
    await settle()
    assert (turns.has_room("b"), turns.has_room("c")) == (False, False)
    for task in reversed(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert turns.has_room("a")
    async with asyncio.timeout(1), turns.take("a"):
        pass


async def test_a_turn_that_is_not_wanted_any_more_goes_to_the_next() -> None:
    turns = Turns(1, most=10, most_of_one=10)
    began = asyncio.Event()

    async def wait(owner: str) -> None:
        async with turns.take(owner):
            began.set()

    async with turns.take("x"):
        first, second = (asyncio.create_task(wait(owner)) for owner in "ab")
        await settle()
    first.cancel()  # after it was given the turn, and before it runs
    await asyncio.wait_for(began.wait(), 1)
    await asyncio.gather(first, second, return_exceptions=True)
    async with asyncio.timeout(1), turns.take("x"):
        pass


async def test_owners_start_in_rotation_once_per_turn_of_the_loop() -> None:
    pace, started = Pace(), []
    for owner in "aaaabc":
        pace.start(owner, lambda owner=owner: started.append(owner))
    for count in range(1, 7):
        await asyncio.sleep(0)
        assert len(started) == count
    assert "".join(started) == "abcaaa"


async def test_work_that_fails_or_was_cancelled_stops_no_other() -> None:
    pace, started = Pace(), []
    waiting = [asyncio.create_task(pace.wait("a")) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()

    def fail() -> None:
        started.append("failed")
        raise ZeroDivisionError

    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    pace.start("b", fail)
    pace.start("c", lambda: started.append("started"))
    await asyncio.wait(waiting)
    await settle()
    assert started == ["failed", "started"]
    assert [task.cancelled() for task in waiting] == [False, True, False]
    assert isinstance(reported[0]["exception"], ZeroDivisionError)


async def test_owner_that_comes_later_is_served_before_the_next_work_of_the_busy_one() -> None:
    pace, started = Pace(), []
    for owner in "aaa":
        pace.start(owner, lambda owner=owner: started.append(owner))
    await asyncio.sleep(0)
    pace.start("b", lambda: started.append("b"))
    await settle()
    assert "".join(started) == "abaa"
