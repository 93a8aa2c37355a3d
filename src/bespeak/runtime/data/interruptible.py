"""Reads in threads that end when their caller gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any, Final, TypeVar

from bespeak.runtime.threads import run_in_thread

ResultT = TypeVar("ResultT")
Cancellable = Callable[[Callable[[], Any]], AbstractContextManager[None]]
"""Opens a block that the given function ends from another thread."""


async def run_interruptible(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Call a function in a thread, with a Cancellable as its last argument. Cancelling ends its block."""
    interruption = _Interruption()
    try:
        return await run_in_thread(function, *arguments, interruption.block)
    except asyncio.CancelledError:
        interruption.happen()
        raise


class _Interruption:
    """Ends a block at most once, and never after it was left: its connection may be closed then."""

    def __init__(self) -> None:
        self._lock: Final = Lock()
        self._interrupt: Callable[[], Any] | None = None
        self._happened = False

    def happen(self) -> None:
        with self._lock:
            self._happened = True
            if self._interrupt is not None:
                self._interrupt()

    @contextmanager
    def block(self, interrupt: Callable[[], Any]) -> Iterator[None]:
        with self._lock:
            if self._happened:
                raise InterruptedError("cancelled before it began")
            self._interrupt = interrupt
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None
