"""Eager coroutines, threads for handlers that block, and fair turns for agents.

Most async handlers never suspend. Creating a task, or even awaiting, for each of them would cost more than the
handler. So a coroutine runs at once, and becomes an awaitable only if it really waits.

Places and turns of the event loop are given to agents in rotation. An agent with many requests waits behind its own
requests, so that it slows another agent at most twofold.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from asyncio import current_task
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, Final, TypeVar

import msgspec

ResultT = TypeVar("ResultT")


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The result of a coroutine that ended without waiting."""

    value: Any


class WaitingCoroutine(msgspec.Struct, frozen=True):
    coroutine: Coroutine[Any, Any, Any]
    awaited: Any


def call_eagerly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function and run its coroutine up to its first real wait, in one step; return the result or a Waiting."""
    result = function(*arguments)
    if type(result) is not types.CoroutineType:
        return result
    try:
        awaited = result.send(None)
    except StopIteration as end:
        return end.value
    return WaitingCoroutine(result, awaited)


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


_MOST: Final = 32

# Not the loop's own executor: closing a loop waits for it, and a handler may never return.
_pool: Final = ThreadPoolExecutor(_MOST, "bespeak-handler")
_running: set[object] = set()


async def cancel_tasks(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks and wait for their ends, whatever these are."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def run_in_thread(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Call a function in a thread, with the current context variables."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool, contextvars.copy_context().run, _call, function, arguments)


def running_threads() -> int:
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


T = TypeVar("T")


class FairSemaphore:
    """A semaphore that serves owners in rotation, with bounds on those who wait."""

    def __init__(self, places: int, *, most: int, most_of_one: int) -> None:
        self._free = places
        self._most = most
        self._most_of_one = most_of_one
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # in the order of their turns

    def has_room(self, owner: str) -> bool:
        own = len(self._waiting.get(owner, ()))
        return own < self._most_of_one and sum(map(len, self._waiting.values())) < self._most

    @asynccontextmanager
    async def take(self, owner: str) -> AsyncIterator[None]:
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(owner, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on(owner)
                raise
            finally:
                self._forget(owner, turn)
        try:
            yield
        finally:
            self._pass_on(owner)

    def _pass_on(self, served: str) -> None:
        """Give a turn to the next owner: another one than was just served, if one waits."""
        while self._waiting:
            _, turn = _take_next(self._waiting, served)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, owner: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(owner)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[owner]


class Pace:
    """Starts work that holds the event loop: once per turn of the loop, for owners in rotation."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        """Work that has not started, by owner, in the order of their next turns."""
        self._served: str | None = None

    def start(self, owner: str, work: Callable[[], None]) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._start_next)
        self._waiting.setdefault(owner, deque()).append(work)

    async def wait(self, owner: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self.start(owner, lambda: None if turn.done() else turn.set_result(None))
        await turn

    def _start_next(self) -> None:
        self._served, work = _take_next(self._waiting, self._served)
        if self._waiting:  # before the work, which may raise
            asyncio.get_running_loop().call_soon(self._start_next)
        work()


def _take_next(waiting: OrderedDict[str, deque[T]], served: str | None) -> tuple[str, T]:
    """Take what waits first of the next owner. The owner that was just served is the last of all."""
    if next(iter(waiting)) == served:
        waiting.move_to_end(served)
    owner, queue = next(iter(waiting.items()))
    first = queue.popleft()
    waiting.move_to_end(owner)
    if not queue:
        del waiting[owner]
    return owner, first
