"""Awaiting with notice: `on_suspend` is called when a coroutine really waits, and only then."""

from __future__ import annotations

import asyncio

import pytest

from bespeak.transports.suspension import await_noticing

pytestmark = pytest.mark.anyio


async def test_a_coroutine_that_does_not_wait_is_not_noticed() -> None:
    noticed: list[None] = []

    async def at_once() -> int:
        return 7

    assert await await_noticing(at_once(), lambda: noticed.append(None)) == 7
    assert noticed == []


async def test_each_wait_is_noticed_before_it_begins() -> None:
    seen: list[str] = []

    async def twice() -> int:
        for _ in range(2):
            seen.append("before")
            await asyncio.sleep(0)
            seen.append("after")
        return 7

    assert await await_noticing(twice(), lambda: seen.append("noticed")) == 7
    assert seen == ["before", "noticed", "after"] * 2


async def test_an_error_passes_through() -> None:
    async def wrong() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await await_noticing(wrong(), lambda: None)


async def test_cancelling_reaches_the_coroutine() -> None:
    cleaned: list[str] = []
    started = asyncio.Event()

    async def patient() -> int:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            cleaned.append("up")
        return 7

    async def outer() -> int:
        return await await_noticing(patient(), lambda: None)

    task = asyncio.create_task(outer())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["up"]


async def test_a_timeout_inside_the_coroutine_works_as_usual() -> None:
    async def limited() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "not"

    assert await await_noticing(limited(), lambda: None) == "timed out"
