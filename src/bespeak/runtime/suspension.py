"""Eager coroutines: run at once, and become an awaitable only if they really wait.

Most async handlers never suspend. Creating a task, or even awaiting, for each of them would cost more than the handler.
"""

from __future__ import annotations

import types
from asyncio import current_task
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar

import msgspec

ResultT = TypeVar("ResultT")


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The result of a coroutine that ended without waiting."""

    value: Any


class Waiting(msgspec.Struct, frozen=True):
    """A coroutine that waits for something."""

    coroutine: Coroutine[Any, Any, Any]
    awaited: Any


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, and run the coroutine that it may return up to its first real wait; return the result or a
    Waiting. Run in the context variables of a call, this is one step instead of two.
    """
    result = function(*arguments)
    if type(result) is not types.CoroutineType:
        return result
    try:
        awaited = result.send(None)
    except StopIteration as end:
        return end.value
    return Waiting(result, awaited)


def is_in_task() -> bool:
    """Return True if there is a task to wait in, or no loop at all."""
    try:
        return current_task() is not None
    except RuntimeError:
        return True


def begin(
    coroutine: Coroutine[Any, Any, ResultT], variables: Context, *, apart: bool = False
) -> Finished | Coroutine[Any, Any, ResultT]:
    """Run a coroutine up to its first real wait, in the current task; the rest must be awaited there.

    It has its own context variables, because the task answers several agents in turn. Without a current task, as in a
    protocol's callback, nothing runs before it is awaited in one: timeouts and task groups need a task. The same holds
    with `apart`, for a coroutine that is awaited in another task.
    """
    return _run(coroutine, variables) if not apart and is_in_task() else _in_task(coroutine, variables)


async def _in_task(coroutine: Coroutine[Any, Any, ResultT], variables: Context) -> ResultT:
    begun = _run(coroutine, variables)
    if isinstance(begun, Finished):
        result: ResultT = begun.value
        return result
    return await begun


def _run(coroutine: Coroutine[Any, Any, ResultT], variables: Context) -> Finished | Coroutine[Any, Any, ResultT]:
    try:
        awaited = variables.run(coroutine.send, None)
    except StopIteration as end:
        return Finished(end.value)
    return _rest(coroutine, variables, awaited)


async def _rest(coroutine: Coroutine[Any, Any, ResultT], variables: Context, awaited: Any) -> ResultT:
    return await resume(coroutine, awaited, variables)


@types.coroutine
def resume(
    coroutine: Coroutine[Any, Any, ResultT], awaited: Any, variables: Context | None = None
) -> Generator[Any, Any, ResultT]:
    """Await the rest of a coroutine that waits for something; without `variables` in the context of the task."""
    step: Callable[[Any], Any]
    while True:
        try:
            given = yield awaited
            step = coroutine.send
        except BaseException as error:  # noqa: BLE001 - the coroutine handles it
            step, given = coroutine.throw, error
        try:
            awaited = step(given) if variables is None else variables.run(step, given)
        except StopIteration as end:
            result: ResultT = end.value
            return result
