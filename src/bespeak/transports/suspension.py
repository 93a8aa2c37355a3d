"""Awaiting something that seldom waits."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


@types.coroutine
def await_noticing(
    coroutine: Coroutine[Any, Any, ResultT], on_suspend: Callable[[], None]
) -> Generator[Any, None, ResultT]:
    """Await a coroutine in the current task, and call `on_suspend` each time before it really waits."""
    step: Callable[[Any], Any] = coroutine.send
    sent: BaseException | None = None
    while True:
        try:
            awaited = step(sent)
        except StopIteration as end:
            result: ResultT = end.value
            return result
        on_suspend()
        try:
            yield awaited
        except BaseException as error:  # noqa: BLE001 - the coroutine decides what becomes of it
            step, sent = coroutine.throw, error
        else:
            step, sent = coroutine.send, None
