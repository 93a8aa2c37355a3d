"""Turns go round the owners, so that nobody waits behind all that another has asked for."""

from __future__ import annotations

import asyncio

import pytest

from bespeak.runtime.turns import Turns

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
    assert "".join(served) == "aabcaa"


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
