"""Eager coroutines, threads for handlers that block, and fair turns for agents.

Most async handlers never suspend. Creating a task, or even awaiting, for each of them would cost more than the
handler. So a coroutine runs at once, and becomes an awaitable only if it really waits.

Places and turns of the event loop are given to agents in rotation. An agent with many requests waits behind its own
requests, so that it slows another agent at most twofold.
"""

from __future__ import annotations

import asyncio
import os
import threading
import types
from asyncio import current_task
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Final, TypeVar

import msgspec

from bespeak.errors import BespeakError

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


HELD: Final = 0.1  # seconds for which a step may hold the event loop before its handler is named in the log
Watch = Callable[[float], object]  # takes the seconds of a step that held the loop for longer


def begin(
    coroutine: Coroutine[Any, Any, ResultT], variables: Context, watch: Watch | None = None, *, apart: bool = False
) -> Finished | Coroutine[Any, Any, ResultT]:
    """Run a coroutine up to its first real wait, in the current task; the rest must be awaited there."""
    # It has its own context variables, because the task answers several agents in turn. Without a current task, as in a
    # protocol's callback, nothing runs before it is awaited in one: timeouts and task groups need a task. The same
    # holds with `apart`, for a coroutine that is awaited in another task.
    return _run(coroutine, variables, watch) if not apart and is_in_task() else _in_task(coroutine, variables, watch)


async def _in_task(coroutine: Coroutine[Any, Any, ResultT], variables: Context, watch: Watch | None) -> ResultT:
    begun = _run(coroutine, variables, watch)
    if isinstance(begun, Finished):
        result: ResultT = begun.value
        return result
    return await begun


def _run(
    coroutine: Coroutine[Any, Any, ResultT], variables: Context, watch: Watch | None
) -> Finished | Coroutine[Any, Any, ResultT]:
    began = perf_counter()
    try:
        awaited = variables.run(coroutine.send, None)
    except StopIteration as end:
        return Finished(end.value)
    finally:
        if watch is not None and perf_counter() - began > HELD:
            watch(perf_counter() - began)
    return _rest(coroutine, variables, awaited, watch)


async def _rest(
    coroutine: Coroutine[Any, Any, ResultT], variables: Context, awaited: Any, watch: Watch | None
) -> ResultT:
    return await resume(coroutine, awaited, variables, watch)


@types.coroutine
def resume(
    coroutine: Coroutine[Any, Any, ResultT], awaited: Any, variables: Context | None = None, watch: Watch | None = None
) -> Generator[Any, Any, ResultT]:
    """Await the rest of a coroutine that waits for something; without `variables` in the context of the task."""
    step: Callable[[Any], Any]
    while True:
        try:
            given = yield awaited
            step = coroutine.send
        except BaseException as error:  # noqa: BLE001 - the coroutine handles it
            step, given = coroutine.throw, error
        began = perf_counter()
        try:
            awaited = step(given) if variables is None else variables.run(step, given)
        except StopIteration as end:
            result: ResultT = end.value
            return result
        finally:
            if watch is not None and perf_counter() - began > HELD:
                watch(perf_counter() - began)


async def cancel_tasks(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks and wait for their ends, whatever these are."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def wait_at_most(seconds: float, event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


MOST_THREADS: Final = 40
MOST_WAITING: Final = 1000  # calls that may wait for a thread; more would wait for longer than their callers do


class OverloadedError(BespeakError):
    """Raised if all threads are busy and too many calls wait for one."""

    def __init__(self) -> None:
        super().__init__("all threads are busy, and too many calls wait for one")


class ThreadCall:
    """A call that waits for a thread, runs in one, or has ended there."""

    __slots__ = ("_arguments", "_function", "_rest", "_variables", "begun", "failure", "future", "mailbox", "value")

    def __init__(self, mailbox: _Mailbox, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.mailbox: _Mailbox | None = mailbox  # None once the result is delivered
        self.future: asyncio.Future[Any] = mailbox.loop.create_future()
        self.begun = False
        self.value: Any = None
        self.failure: BaseException | None = None
        self._variables = copy_context()
        self._function = function
        self._arguments = arguments
        self._rest: asyncio.Future[Any] | None = None

    def run(self) -> None:
        # In this order: the loop looks at `begun` after it has cancelled the future, so it never misses a call that
        # runs on.
        self.begun = True
        if self.future.cancelled():
            self.failure = asyncio.CancelledError()
            return
        try:
            self.value = self._variables.run(self._function, *self._arguments)
        except StopIteration as error:
            # A future cannot hold StopIteration: awaiting it would never end.
            self.failure = RuntimeError("the function raised StopIteration")
            self.failure.__cause__ = error
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            self.failure = error

    def deliver(self) -> None:
        self.mailbox = None
        _fill(self._rest or self.future, self)

    def rest(self) -> asyncio.Future[Any]:
        """Return a future of the result for a call that goes on although nobody waits for it any more."""
        if self._rest is None:
            self._rest = asyncio.get_running_loop().create_future()
            if self.mailbox is None:
                _fill(self._rest, self)
        return self._rest


def _fill(future: asyncio.Future[Any], call: ThreadCall) -> None:
    if future.done():
        return
    if call.failure is None:
        future.set_result(call.value)
    else:
        future.set_exception(call.failure)
        call.failure = None  # its traceback holds the call


class _Mailbox:
    """Results for one event loop. It is woken once for all results that are ready, which is most of what they cost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._done: deque[ThreadCall] = deque()
        self._woken = False

    def post(self, call: ThreadCall) -> None:
        self._done.append(call)
        if not self._woken:
            self._woken = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop is closed: nobody waits
                self._woken = False
                self._done.clear()

    def _deliver(self) -> None:
        self._woken = False  # before the results are taken: whatever is posted from now on wakes again
        while self._done:
            self._done.popleft().deliver()


class Workers:
    """The threads of a process, for functions of the operator that block."""

    # An executor of the standard library makes two futures and wakes the loop for each call, which costs 15 µs more.
    # The threads are daemons: a function that never returns must not keep the process alive.

    def __init__(self, most: int = MOST_THREADS, waiting: int = MOST_WAITING) -> None:
        self._most = most
        self._places = most + waiting
        self._own = waiting // 2  # calls of one owner that may wait: it leaves places to others
        self._waiting: OrderedDict[str, deque[ThreadCall]] = OrderedDict()  # by owner, in the order of their next turns
        self._served: str | None = None
        self._queue: SimpleQueue[None] = SimpleQueue()  # an entry for each call that waits
        self._lock = threading.Lock()  # a process may have several loops
        self._local = threading.local()
        self._threads = 0
        self.pending = 0  # calls that have not returned, cancelled ones included: only a thread gives a place back

    def submit(
        self, function: Callable[..., Any], *arguments: Any, owner: str = "", always: bool = False
    ) -> ThreadCall:
        """Let a thread call a function, with a copy of the context variables. May raise OverloadedError."""
        # Threads serve owners in rotation: an agent with many calls waits behind its own.
        loop = asyncio.get_running_loop()
        mailbox: _Mailbox | None = getattr(self._local, "mailbox", None)
        if mailbox is None or mailbox.loop is not loop:
            mailbox = self._local.mailbox = _Mailbox(loop)
        call = ThreadCall(mailbox, function, arguments)
        with self._lock:
            crowded = self.pending >= self._places or (owner and len(self._waiting.get(owner, ())) >= self._own > 0)
            if crowded and not always:
                raise OverloadedError
            self.pending += 1
            if self.pending > self._threads and self._threads < self._most:
                self._start()
            self._waiting.setdefault(owner, deque()).append(call)
        self._queue.put(None)
        return call

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name=f"bespeak-handler_{self._threads}", daemon=True).start()
        except RuntimeError:  # the system has no more threads
            if not self._threads:
                self.pending -= 1
                raise OverloadedError from None
        else:
            self._threads += 1

    def _work(self) -> None:
        take = self._queue.get
        while True:
            take()
            with self._lock:
                self._served, call = _take_next(self._waiting, self._served)
            call.run()
            with self._lock:
                self.pending -= 1
            assert call.mailbox is not None
            call.mailbox.post(call)
            del call  # an idle thread must not keep the last result alive


_workers = Workers()


def _forget_threads() -> None:
    global _workers  # noqa: PLW0603 - a forked process has none of the threads
    _workers = Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def submit(function: Callable[..., Any], *arguments: Any, owner: str = "", always: bool = False) -> ThreadCall:
    """Let a thread of this process call a function. Raises OverloadedError if too many wait, unless `always`."""
    return _workers.submit(function, *arguments, owner=owner, always=always)


async def run_in_thread(function: Callable[..., ResultT], *arguments: Any, owner: str = "") -> ResultT:
    """Call a function in a thread, with the current context variables. Raises OverloadedError if too many wait.

    If the wait is cancelled, a call that has not begun never will; one that runs goes on.
    """
    result: ResultT = await _workers.submit(function, *arguments, owner=owner).future
    return result


async def call_in_thread(function: Callable[..., Any], *arguments: Any, owner: str = "") -> Any:
    """Call a handler in a thread. A coroutine that it returns is awaited here; a call that goes on is `outliving`."""
    call = _workers.submit(function, *arguments, owner=owner)
    try:
        result = await call.future
    except asyncio.CancelledError as error:
        if call.begun and call.future.cancelled():
            outlive(error, call.rest)
        raise
    return await result if type(result) is types.CoroutineType else result


Rest = Callable[[], "asyncio.Future[Any]"]  # returns a future of the result of a handler


def outlive(error: asyncio.CancelledError, rest: Rest) -> None:
    error.outliving = rest  # type: ignore[attr-defined] # not a subclass: Python 3.11's `timeout` compares the type


def take_outliving(error: BaseException) -> Rest | None:
    """Return and forget how to wait for a handler that goes on. A composition around it is not meant."""
    rest: Rest | None = getattr(error, "outliving", None)
    if rest is not None:
        del error.outliving  # type: ignore[attr-defined]
    return rest


def running_threads() -> int:
    """Return the number of calls in threads that have not returned."""
    return _workers.pending


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


_COMPUTING: Final = FairSemaphore(2, most=256, most_of_one=32)


async def compute_in_thread(owner: str | None, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Call a function that computes for long, two at the same time, in turns of the owners.

    Threads that compute share one interpreter with the event loop, which waits for each of them. Raises OverloadedError
    if too many wait.
    """
    if not _COMPUTING.has_room(owner or ""):
        raise OverloadedError
    async with _COMPUTING.take(owner or ""):
        return await run_in_thread(function, *arguments)


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
