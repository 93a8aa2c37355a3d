"""Threads for handlers that block without `await`."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

ResultT = TypeVar("ResultT")

_MOST: Final = 32

# Not the loop's own executor: closing a loop waits for it, and a handler may never return.
_pool: Final = ThreadPoolExecutor(_MOST, "bespeak-handler")
_running: set[object] = set()


async def run_in_thread(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Call a function in a thread, with the current context variables."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool, contextvars.copy_context().run, _call, function, arguments)


def running_threads() -> int:
    """Return the number of calls that have not returned."""
    return len(_running)


def _call(function: Callable[..., ResultT], arguments: tuple[Any, ...]) -> ResultT:
    token = object()
    _running.add(token)
    try:
        return function(*arguments)
    except StopIteration as error:
        # A future cannot hold StopIteration: awaiting it would never end.
        raise RuntimeError("the function raised StopIteration") from error
    finally:
        _running.discard(token)
