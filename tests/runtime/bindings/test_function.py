"""What handlers share: opened once, seen by every call, closed at the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from bespeak.errors import ConfigError, ContractError
from bespeak.runtime.bindings.function import Lifespan, read_lifespan

pytestmark = pytest.mark.anyio


async def test_resources_are_opened_and_closed_by_the_same_task() -> None:
    seen: list[Any] = []

    async def resources() -> AsyncIterator[str]:
        seen.append(asyncio.current_task())
        async with asyncio.TaskGroup():  # a task group refuses to be left by another task
            yield "pool"
        seen.append(asyncio.current_task())

    lifespan = Lifespan(read_lifespan(resources))
    assert await asyncio.create_task(lifespan.open()) == "pool"
    await asyncio.create_task(lifespan.close())
    assert len(seen) == 2
    assert seen[0] is seen[1]


async def test_a_plain_generator_and_a_context_manager_are_lifespans_too() -> None:
    @contextlib.asynccontextmanager
    async def managed() -> AsyncIterator[str]:
        yield "managed"

    def plain() -> Iterator[str]:
        yield "plain"

    for function, value in ((managed, "managed"), (plain, "plain")):
        lifespan = Lifespan(read_lifespan(function))
        assert await lifespan.open() == value
        await lifespan.close()


async def test_a_failing_start_names_the_line() -> None:
    async def resources() -> AsyncIterator[None]:
        raise ValueError("no such database")
        yield

    with pytest.raises(
        ConfigError, match=r"the lifespan function failed at .*test_function\.py:\d+ with ValueError: no"
    ):
        await Lifespan(read_lifespan(resources)).open()


async def test_a_failing_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def resources() -> AsyncIterator[None]:
        yield
        raise ValueError("already closed")

    lifespan = Lifespan(read_lifespan(resources))
    await lifespan.open()
    with caplog.at_level(logging.ERROR):
        await lifespan.close()
    assert "the lifespan function failed while the server stopped" in caplog.text
    assert "already closed" in caplog.text


async def test_a_start_that_is_given_up_closes_what_was_opened() -> None:
    closed = asyncio.Event()
    begun = asyncio.Event()

    async def resources() -> AsyncIterator[None]:
        try:
            begun.set()
            await asyncio.Event().wait()
            yield
        finally:
            closed.set()

    lifespan = Lifespan(read_lifespan(resources))
    opening = asyncio.create_task(lifespan.open())
    await begun.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await lifespan.close()
    assert closed.is_set()


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda: None, "must be a generator with one `yield`"), (lambda app: (yield app), "called without arguments")],
    ids=["not a generator", "with a parameter"],
)
def test_other_functions_are_refused_at_declaration(function: Any, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        read_lifespan(function)
