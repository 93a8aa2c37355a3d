"""Functions that yield: their items as a stream, or collected in one answer.

A caller that does not ask for a stream gets `{"items": [...]}`, within limits. Each stream has a task of its own, in
which the whole handler runs, its clean-up included. The handler is at most one item ahead of its reader. It is ended if
the reader leaves, the time limit is reached, or the caller loses its authority.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, Final

import msgspec

from bespeak.checks.lint.rules.handler import SIGNATURE
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import StreamLimits
from bespeak.contract.schema.file_schema import has_files
from bespeak.contract.schema.validation import Validator, compile_schema, non_finite
from bespeak.errors import ContractError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import CONFIRMATION_ID, IDEMPOTENCY_KEY, MEDIA_NDJSON, STREAM_REQUIRED, prefers
from bespeak.protocol.exchange.messages import ITEMS, Batch, Context, Request, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import WaitingCoroutine, call_eagerly, resume, run_in_thread, submit
from bespeak.runtime.functions.output_filter import OutputFilter, UnfitResult
from bespeak.runtime.functions.reading import closed_output
from bespeak.runtime.functions.signature import HandlerCall, read_signature
from bespeak.runtime.gates.authority import freshness_gate, scope_gate
from bespeak.runtime.handling import RefusedError
from bespeak.runtime.identity.authority import Authority
from bespeak.text.diagnostics.diagnostic import Diagnostic

BATCH_ITEMS: Final = 64
BATCH_BYTES: Final = 16_384  # items that are ready at once are sent together, up to so many bytes
JUDGED_EVERY: Final = 1.0  # seconds between two checks that the caller may still call
CLOSING: Final = 5.0  # seconds to wait for the clean-up of a handler
_END: Final[Any] = object()
_FAILURES: Final = (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError)
_encode = msgspec.json.Encoder().encode
_running: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly
Explain = Callable[[BaseException], Response | Coroutine[Any, Any, Response]]  # makes the refusal of a broken stream

INTERRUPTED: Final = Refused(
    status.UNAVAILABLE,
    "stream-interrupted",
    "The stream ended before its last item: its reader is gone, or the server stops.",
)


def find_fault(endpoint: Endpoint, function: Callable[..., Any]) -> str | None:
    """Return why a function cannot handle an endpoint as far as streaming is concerned; None if it can."""
    try:
        signature = read_signature(function)
        item = signature.item if signature.yields and endpoint.streams else None
    except ContractError as error:
        return str(error)
    if not signature.yields:
        return "the endpoint has `streams`, so its function must yield the items" if endpoint.streams else None
    if not endpoint.streams:
        return "the function yields its results; write `streams = true` in the endpoint, or return a list"
    if signature.needs:
        name = next(iter(signature.needs))
        return f"a provider cannot fill {name!r} of a function that yields: open what it needs inside the function"
    if has_files(endpoint.input_schema) or has_files(endpoint.output_schema):
        return "a function that yields can neither take nor send files"
    if endpoint.semantic.impact == "irreversible":
        # A reader can leave a stream at any item, which would leave such a call half done.
        return "a call that cannot be undone must not break off in the middle: return the whole result, do not yield it"
    if _items_of(endpoint) is None:
        return 'the output of an endpoint with `streams` must be an object with the array "items"'
    try:
        closed_output(item)
    except ContractError as error:
        return f"the type of the items {error}"
    return None


def bind_stream(endpoint: Endpoint, function: Callable[..., Any], plan: HandlerCall) -> StreamBinding | Diagnostic:
    """Make the call of an endpoint whose function yields, or return the finding."""
    fault = find_fault(endpoint, function)
    if fault is not None:
        return SIGNATURE.at(endpoint, "/handler/function", fault)
    return StreamBinding(endpoint, plan, read_signature(function).item)


def _items_of(endpoint: Endpoint) -> dict[str, Any] | None:
    """Return the schema of one item, complete by itself."""
    schema = endpoint.output_schema
    items = (schema.get("properties") or {}).get("items") or {}
    if items.get("type") != "array" or not isinstance(items.get("items"), dict):
        return None
    return {**{name: schema[name] for name in ("$schema", "$defs") if name in schema}, **items["items"]}


class StreamBinding:
    """The handler of one endpoint that streams. It is called with the call, like a built-in method."""

    def __init__(self, endpoint: Endpoint, plan: HandlerCall, item: Any) -> None:
        self._endpoint = endpoint
        self._plan = plan
        schema = _items_of(endpoint)
        self._filter = OutputFilter(endpoint, item, schema)
        compiled = compile_schema(schema or {})
        assert isinstance(compiled, Validator), "it is a part of a schema that was compiled"
        self._item = compiled

    async def __call__(self, call: RoutedCall) -> dict[str, Any] | ItemStream:
        """Collect the items, or begin to stream them if the caller asks for it and nothing has to keep the answer."""
        items = self._begin(call, call.input)
        limits, judge = call.routes.service.stream_limits, self._judge(call)
        if not _is_streamed(call):
            return {"items": await self._collect(call, items, limits, judge)}

        def write(item: Any) -> bytes:
            return _in_words_of(call, *self._select(limits, item))

        stream = ItemStream(items, write, judge, self._deadline(limits), longest=limits.seconds)
        stream.attach(call.request)
        try:
            await stream.begin()
        except BaseException:
            await stream.aclose()
            raise
        return stream

    def _begin(self, call: RoutedCall, given: dict[str, Any]) -> AsyncGenerator[Any]:
        made = self._plan(
            given, Context(call.request, call.principal, call.method, call.path, given, call.server.state)
        )
        return made if hasattr(made, "__anext__") else _in_threads(made, call.agent_id or "")

    async def follow(self, call: RoutedCall, given: dict[str, Any]) -> AsyncGenerator[Any]:
        """Yield the declared part of each item, without an end: for a reader that takes them as it can."""
        async with aclosing(self._begin(call, given)) as items:
            async for item in items:
                yield self._select(call.routes.service.stream_limits, item)[0]

    async def _collect(
        self, call: RoutedCall, items: AsyncGenerator[Any], limits: StreamLimits, judge: Callable[[], None]
    ) -> list[Any]:
        collected: list[Any] = []
        size, listener = 0, ITEMS.get()
        async with self._deadline(limits), aclosing(items):
            async for item in items:
                judge()  # MCP and A2A send each item at once
                kept, written = self._select(limits, item)
                size += len(written)
                if len(collected) >= limits.max_items or size > limits.max_bytes:
                    message = (
                        f"{self._endpoint} has more than {limits.max_items} items or {limits.max_bytes} bytes, which "
                        "are not sent in one answer. Ask for a stream: send Prefer: stream over AGTP, "
                        f"Accept: {MEDIA_NDJSON} over HTTP."
                    )
                    raise RefusedError(Refused(status.UNPROCESSABLE, STREAM_REQUIRED, message))
                collected.append(kept)
                if listener is not None:
                    listener(_in_words_of(call, kept, written))
        return collected

    def _select(self, limits: StreamLimits, item: Any) -> tuple[Any, bytes]:
        """Return the declared part of an item, also as JSON. Raises UnfitResult, or RefusedError if it is too large."""
        kept = self._filter.select(item)
        violations = [] if self._item.is_valid(kept) else self._item.violations(kept)
        written = _encode(kept)
        if written.find(b"null") >= 0:
            violations = violations or non_finite(kept)
        if violations:
            raise UnfitResult(violations)
        if len(written) > limits.max_item:
            message = f"An item of {self._endpoint} has more than {limits.max_item} bytes, so it is not sent."
            raise RefusedError(Refused(status.SERVER_ERROR, "item-too-large", message))
        return kept, written

    @asynccontextmanager
    async def _deadline(self, limits: StreamLimits) -> AsyncIterator[asyncio.Timeout]:
        deadline = asyncio.timeout(limits.seconds)
        try:
            async with deadline:
                yield deadline
        except TimeoutError:
            if not deadline.expired():
                raise  # of the handler itself
            message = f"The items of {self._endpoint} took longer than {limits.seconds:g} seconds."
            raise RefusedError(Refused(status.TIMEOUT, "stream-timeout", message)) from None

    def _judge(self, call: RoutedCall) -> Callable[[], None]:
        """Make the check that the authority of a caller has not ended; it costs something only once in a while."""
        clock = asyncio.get_running_loop().time
        due = clock() + JUDGED_EVERY

        def judge() -> None:
            nonlocal due
            if clock() < due or call.agent_id is None:
                return
            due = clock() + JUDGED_EVERY
            before, server = call.principal, call.server
            judged = Authority.of(before, call.request).judge(server.principals)
            refused = judged if isinstance(judged, Refused) else None
            if not isinstance(judged, Refused):
                call.principal = judged
                refused = (freshness_gate(call) if server.agents.is_stale else None) or scope_gate(call)
                call.principal = before
            if refused is not None:
                raise RefusedError(refused)

        return judge


def _in_words_of(call: RoutedCall, item: Any, written: bytes) -> bytes:
    """Return an item as the caller reads it: translated for one with another vocabulary. Raises RefusedError."""
    meaning = call.request.semantic
    translates = meaning is not None and meaning.translates
    return _encode(meaning.translate_output(item, is_item=True)) if translates else written


def _is_streamed(call: RoutedCall) -> bool:
    """Return True if the caller asks for a stream, and its answer need not be kept, repeated or cut."""
    request = call.request
    if call.parent is not None or call.hints is not None or call.route.is_confirmed:
        return False
    if IDEMPOTENCY_KEY in request.headers or CONFIRMATION_ID in request.headers:
        return False
    return request.streams or (request.connection.face == "agtp" and prefers(request.headers, "stream"))


async def _in_threads(items: Generator[Any], owner: str) -> AsyncGenerator[Any]:
    """Run a generator in threads, one step at a time, in one context."""
    variables = contextvars.copy_context()
    step: asyncio.Task[Any] | None = None
    try:
        while True:
            step = asyncio.ensure_future(run_in_thread(variables.run, next, items, _END, owner=owner))
            item = await asyncio.shield(step)
            if item is _END:
                return
            yield item
    finally:
        closing = asyncio.get_running_loop().create_task(_close(items, step, variables, owner), name="bespeak-closing")
        _running.add(closing)
        closing.add_done_callback(_running.discard)
        await asyncio.wait((closing,), timeout=CLOSING)  # a thread that never ends must not keep its caller waiting
        if closing.done():
            closing.result()


async def _close(
    items: Generator[Any], step: asyncio.Task[Any] | None, variables: contextvars.Context, owner: str
) -> None:
    if step is not None:
        await asyncio.wait((step,))  # a thread cannot be interrupted, and its generator not be closed meanwhile
    # A full pool must not prevent the clean-up.
    await submit(variables.run, items.close, owner=owner, always=True).future


class ItemStream:
    """The items of one call, written and bounded. It is a `Stream`, and a result that the dispatcher knows."""

    def __init__(
        self,
        items: AsyncGenerator[Any],
        write: Callable[[Any], bytes],
        judge: Callable[[], None],
        deadline: AbstractAsyncContextManager[asyncio.Timeout],
        *,
        longest: float,
    ) -> None:
        self.explain: Explain | None = None  # makes the refusal of a stream that breaks off; None before it has begun
        self._items = items
        self._write = write
        self._judge = judge
        self._asked = asyncio.Event()
        self._wanted: asyncio.Future[Batch] | None = None
        self._first: Batch | None = None  # what the head of the answer has waited for
        self._held: BaseException | None = None  # the failure, if nobody has asked for more yet
        self._ready: list[bytes] = []  # items to be sent together
        self._size = 0  # their bytes
        self._over = False  # the end was given to the reader
        self._interrupted = False
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(longest + CLOSING, self.interrupt)
        self._task = loop.create_task(self._run(deadline), name="bespeak-stream")
        _running.add(self._task)
        self._task.add_done_callback(self._finish)

    def attach(self, request: Request) -> None:
        """End with the connection of a request."""
        connection = request.connection
        connection.interrupt = self.interrupt

        def detach(_: object) -> None:
            if connection.interrupt == self.interrupt:
                connection.interrupt = None

        self._task.add_done_callback(detach)
        if connection.ended:
            self.interrupt()

    async def begin(self) -> None:
        """Wait for the first items. Raises what the handler raises before: then nothing was sent."""
        self._first = await self._take()

    async def next(self) -> Batch:
        if self._over:
            return Batch(ended=True)
        try:
            batch, self._first = self._first or await self._take(), None
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the reader is told, the reason is logged
            return await self._fail(error)
        self._over = batch.ended
        return batch

    def interrupt(self) -> None:
        """End the stream now and its handler soon: the reader is gone, the server stops, or the time is long over."""
        if not self._interrupted:  # a second cancellation would interrupt the clean-up
            self._interrupted = True
            self._task.cancel()
            self._fail_with(RefusedError(INTERRUPTED))  # now, for a handler may ignore its cancellation

    async def aclose(self) -> None:
        if not self._task.done():
            self.interrupt()
            await asyncio.wait((self._task,), timeout=CLOSING)
        if not self._over and self.explain is not None:
            await self._fail(RefusedError(INTERRUPTED))

    async def _fail(self, error: BaseException) -> Batch:
        self._over = True
        assert self.explain is not None, "set when the stream began"
        response = self.explain(error)
        return Batch(failure=response if isinstance(response, Response) else await response)

    async def _take(self) -> Batch:
        if self._held is not None:
            raise self._held
        self._wanted = asyncio.get_running_loop().create_future()
        self._asked.set()
        return await self._wanted

    def _fail_with(self, error: BaseException) -> None:
        if self._wanted is None or self._wanted.done():
            self._held = error
        else:
            self._wanted.set_exception(error)

    async def _run(self, deadline: AbstractAsyncContextManager[asyncio.Timeout]) -> None:
        try:
            async with deadline as limit, aclosing(self._items):
                await self._send_all(limit)
        except _FAILURES as error:
            stopped = self._interrupted or isinstance(error, asyncio.CancelledError)
            self._fail_with(RefusedError(INTERRUPTED) if stopped else error)

    def _finish(self, task: asyncio.Task[None]) -> None:
        _running.discard(task)
        self._timer.cancel()
        if task.cancelled() or task.exception() is not None:  # cancelled before its first step
            self._fail_with(RefusedError(INTERRUPTED))

    async def _advance(self) -> Any:
        return await anext(self._items, _END)

    async def _send_all(self, limit: asyncio.Timeout) -> None:
        try:
            while True:
                await self._asked.wait()
                if self._interrupted or limit.expired():  # a handler that ignores its cancellation goes no further
                    raise asyncio.CancelledError
                item = call_eagerly(self._advance)
                if isinstance(item, WaitingCoroutine):
                    if self._ready:
                        await self._send()
                    item = await resume(item.coroutine, item.awaited)
                if item is _END:
                    break
                self._judge()
                self._ready.append(self._write(item))
                self._size += len(self._ready[-1])
                if self._size >= BATCH_BYTES or len(self._ready) >= BATCH_ITEMS:
                    await self._send()
        except (Exception, SystemExit, KeyboardInterrupt):
            if self._ready:
                await self._send()
            raise
        await self._send(ended=True)

    async def _send(self, *, ended: bool = False) -> None:
        await self._asked.wait()
        self._asked.clear()
        if self._wanted is not None and not self._wanted.done():  # else its reader was cancelled
            self._wanted.set_result(Batch(tuple(self._ready), ended))
        self._ready, self._size = [], 0
