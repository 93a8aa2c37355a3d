"""Dependencies of handlers: providers are planned when a handler is declared, and opened and closed around each call.

A `def` handler runs in one thread with its `def` providers, from the first one to the last clean-up. Async providers,
and whatever these need, are opened in the event loop before and closed after. Beside an `async def` handler each step
of a `def` provider runs in some thread.

Clean-up runs in reverse order when the handler has returned or failed, and before its result is checked, stored and
sent. The exception of a failed handler is raised at the `yield`. A provider that catches it does not change the answer;
an exception of a clean-up does.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final

from bespeak.contract.handler import Needs
from bespeak.errors import ContractError
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.concurrency import call_in_thread, outlive, run_in_thread, submit
from bespeak.runtime.functions import signature as signatures
from bespeak.runtime.functions.signature import CONTEXT_NAMES, MISSING, HandlerCall, Signature, function_name

Overrides = Mapping[Hashable, Callable[..., Any]]  # replacements of providers, by `provider_key`

_CONTEXT: Final = -1  # the source of an argument that is the Context, where others have the index of a provider
_OPTIONAL: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def is_async(function: Callable[..., Any]) -> bool:
    """Return True for an `async def`, or an object with such a `__call__`."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def provider_key(provider: Callable[..., Any]) -> Hashable:
    """Return what two mentions of one provider have in common; some callables have no hash."""
    try:
        hash(provider)
    except TypeError:
        return id(provider)
    return provider


@dataclass(frozen=True, slots=True)
class Provider:
    function: Callable[..., Any]
    make: Callable[..., Any]  # the function, or what makes its context manager
    arguments: tuple[tuple[str, int], ...]
    is_async: bool
    is_block: bool  # True if it is opened and closed

    def begin(self, values: list[Any], context: Context) -> Any:
        return self.make(**{name: context if at == _CONTEXT else values[at] for name, at in self.arguments})


@dataclass(frozen=True, slots=True)
class NeedsPlan:
    """The providers of a handler, each behind those that it needs."""

    providers: tuple[Provider, ...]
    arguments: tuple[tuple[str, int], ...]
    outer: tuple[int, ...]  # the async ones and those that they need
    inner: tuple[int, ...]  # the others


def plan_needs(needs: Mapping[str, Needs], overrides: Overrides | None = None) -> NeedsPlan:
    """Order the providers that a handler needs. Raises ContractError for a cycle or a parameter that nothing fills."""
    providers: list[Provider] = []
    known: dict[Hashable, int] = {}

    def add(need: Needs, trail: tuple[Callable[..., Any], ...]) -> int:
        key = provider_key(need.provider)
        if need.cached and key in known:
            return known[key]
        provider = (overrides or {}).get(key, need.provider)
        if provider in trail:
            names = " -> ".join(map(function_name, (*trail[trail.index(provider) :], provider)))
            raise ContractError(f"{function_name(provider)}() needs itself: {names}")
        arguments = tuple(
            (name, _CONTEXT if inner is None else add(inner, (*trail, provider)))
            for name, inner in _parameters(provider)
        )
        providers.append(_read_provider(provider, arguments))
        if need.cached:
            known[key] = len(providers) - 1
        return len(providers) - 1

    arguments = tuple((name, add(need, ())) for name, need in needs.items())
    outer: set[int] = set()
    for at in reversed(range(len(providers))):
        if providers[at].is_async or at in outer:
            outer.update((at, *(source for _, source in providers[at].arguments if source != _CONTEXT)))
    inner = tuple(at for at in range(len(providers)) if at not in outer)
    return NeedsPlan(tuple(providers), arguments, tuple(sorted(outer)), inner)


def _parameters(provider: Callable[..., Any]) -> Iterator[tuple[str, Needs | None]]:
    """Return the parameters of a provider that are filled: with what another one provides, or None for the Context."""
    name = function_name(provider)
    try:
        listed = list(signatures.list_parameters(provider))
        hints = signatures.read_hints(provider)
    except ContractError as error:
        raise ContractError(f"the provider {name}(): {error}") from None
    for parameter, kind, default in listed:
        annotation = hints.get(parameter, MISSING)
        need = signatures.find_need(annotation)
        is_context = parameter in CONTEXT_NAMES if annotation is MISSING else annotation in (Context, Context | None)
        if need is not None or is_context:
            yield parameter, need
        elif default is MISSING and kind not in _OPTIONAL:
            raise ContractError(
                f"nothing fills the parameter {parameter!r} of the provider {name}(): annotate it with Context or "
                "Annotated[..., Needs(...)], or give it a default"
            )


def _read_provider(function: Callable[..., Any], arguments: tuple[tuple[str, int], ...]) -> Provider:
    generator = inspect.unwrap(function)  # below `contextmanager`, which wraps it
    if inspect.isasyncgenfunction(generator) or (isinstance(function, type) and hasattr(function, "__aenter__")):
        make = asynccontextmanager(function) if inspect.isasyncgenfunction(function) else function
        return Provider(function, make, arguments, is_async=True, is_block=True)
    if inspect.isgeneratorfunction(generator) or (isinstance(function, type) and hasattr(function, "__enter__")):
        make = contextmanager(function) if inspect.isgeneratorfunction(function) else function
        return Provider(function, make, arguments, is_async=False, is_block=True)
    return Provider(function, function, arguments, is_async=is_async(function), is_block=False)


def plan_needing_call(
    function: Callable[..., Any],
    signature: Signature,
    plan_input: HandlerCall,
    *,
    inline: bool,
    overrides: Overrides | None,
) -> HandlerCall:
    """Plan the calls of a handler with providers; `plan_input` makes its other arguments. Raises ContractError."""
    usual, waits = plan_needs(signature.needs), is_async(function)

    def start(values: dict[str, Any], context: Context) -> Any:
        plan = plan_needs(signature.needs, overrides) if overrides else usual
        call = _NeedingCall(function, plan, context)
        if waits:
            return call.run_between(range(len(plan.providers)), partial(call.call, plan_input(values, context)))
        run, owner = partial(call.run, plan_input, values), context.agent_id or ""
        if plan.outer:
            return call.run_apart(partial(_outwait, run, owner, inline=inline))
        return run() if inline else call_in_thread(run, owner=owner)

    return start


class _NeedingCall:
    __slots__ = ("_context", "_function", "_values", "plan")

    def __init__(self, function: Callable[..., Any], plan: NeedsPlan, context: Context) -> None:
        self._function = function
        self._context = context
        self._values: list[Any] = [None] * len(plan.providers)
        self.plan = plan

    def call(self, arguments: dict[str, Any]) -> Any:
        return self._function(**arguments, **{name: self._values[at] for name, at in self.plan.arguments})

    def run(self, plan_input: HandlerCall, values: dict[str, Any]) -> Any:
        """Call a `def` handler between its inner providers, all in this thread."""
        arguments = plan_input(values, self._context)
        failure: BaseException
        with ExitStack() as stack:
            try:
                for at in self.plan.inner:
                    provider = self.plan.providers[at]
                    made = provider.begin(self._values, self._context)
                    self._values[at] = stack.enter_context(made) if provider.is_block else made
                return self.call(arguments)
            except BaseException as error:
                failure = error
                raise
        raise failure  # a provider has caught it

    async def run_between(self, places: Iterable[int], run: Callable[[], Awaitable[Any]]) -> Any:
        """Call a handler between some of its providers, in this task."""
        failure: BaseException
        async with AsyncExitStack() as stack:
            try:
                await self._open(stack, places)
                return await run()
            except BaseException as error:
                failure = error
                raise
        raise failure

    async def run_apart(self, run: Callable[[], Awaitable[Any]]) -> Any:
        """Call a `def` handler between its outer providers, in a task of its own."""
        # These must not be closed while its thread uses what they have made, even if the call is cancelled.
        task = asyncio.get_running_loop().create_task(self.run_between(self.plan.outer, run))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as error:
            task.cancel()
            _ending.add(task)
            task.add_done_callback(_forget)
            outlive(error, lambda: asyncio.shield(task))
            raise

    async def _open(self, stack: AsyncExitStack, places: Iterable[int]) -> None:
        owner = self._context.agent_id or ""
        for at in places:
            provider = self.plan.providers[at]
            if provider.is_async:
                made = provider.begin(self._values, self._context)
                self._values[at] = await (stack.enter_async_context(made) if provider.is_block else made)
            elif provider.is_block:
                if isinstance(provider.make, type):  # its `__init__` may block; a generator has not begun
                    made = await run_in_thread(provider.begin, self._values, self._context, owner=owner)
                else:
                    made = provider.begin(self._values, self._context)
                self._values[at] = await stack.enter_async_context(_ThreadBlock(made, owner))
            else:
                self._values[at] = await run_in_thread(provider.begin, self._values, self._context, owner=owner)


_ending: Final[set[asyncio.Task[Any]]] = set()  # cancelled calls whose providers are not closed yet


def _forget(task: asyncio.Task[Any]) -> None:
    _ending.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it; the stored answer of a keyed call has it


async def _outwait(run: Callable[[], Any], owner: str, *, inline: bool) -> Any:
    """Call a function in a thread; wait for its end even if this is cancelled, unless it has not begun."""
    if inline:
        return run()
    call = submit(run, owner=owner)
    try:
        return await call.future
    except asyncio.CancelledError:
        if not (call.begun and call.future.cancelled()):
            raise
    return await call.rest()


class _ThreadBlock:
    """A context manager whose two ends run in threads. It is closed even if its opening or closing is cancelled."""

    def __init__(self, block: AbstractContextManager[Any], owner: str) -> None:
        self._block = block
        self._owner = owner
        self._first = threading.Lock()  # taken by the thread when it has opened the block, or by a cancellation

    async def __aenter__(self) -> Any:
        try:
            return await run_in_thread(self._open, owner=self._owner)
        except asyncio.CancelledError as error:
            if not self._first.acquire(blocking=False):
                await self.__aexit__(type(error), error, error.__traceback__)
            raise

    def _open(self) -> Any:
        value = self._block.__enter__()
        if not self._first.acquire(blocking=False):  # nobody waits for it any more
            error = asyncio.CancelledError()
            self._block.__exit__(type(error), error, None)
        return value

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        # A place is certain: what is open must be closed, however many calls wait.
        closing = submit(self._block.__exit__, kind, error, trace, owner=self._owner, always=True)
        return await asyncio.shield(closing.future)
