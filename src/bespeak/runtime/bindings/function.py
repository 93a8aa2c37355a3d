"""Registered functions: Python callables, and the lifespan of what they share (AGTP-API 12.2)."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from types import NoneType
from typing import Any, Final, NamedTuple

from bespeak.checks.lint.rules.handler import NOT_IMPORTABLE, OPEN_RESULT, SIGNATURE, TYPE_ADVICE
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction
from bespeak.errors import ConfigError, ContractError
from bespeak.runtime.bindings.stream import StreamBinding, bind_stream
from bespeak.runtime.concurrency import call_in_thread
from bespeak.runtime.functions.annotations import show_type
from bespeak.runtime.functions.needs import is_async, plan_needing_call
from bespeak.runtime.functions.output_filter import OutputFilter
from bespeak.runtime.functions.reading import closed_output, locate
from bespeak.runtime.functions.signature import MISSING, HandlerCall, function_name, plan_call, read_signature
from bespeak.text.diagnostics.diagnostic import Diagnostic

_CONSTRAINTS: Final = frozenset({"required", "anyOf", "oneOf", "allOf", "$ref", "minProperties"})


def bind_function(endpoint: Endpoint, handler: RegisteredFunction) -> HandlerCall | StreamBinding | Diagnostic:
    """Build the call of an endpoint's function, or return the findings. Imports its module, during registration."""
    function = handler.target or resolve_function(handler.function)
    if isinstance(function, str):
        return NOT_IMPORTABLE.at(
            endpoint,
            "/handler/function",
            f"the handler {handler.function!r} cannot be used: {function}",
            "Give the dotted path of a function that can be imported from the deployment folder.",
        )
    try:
        plan = plan_call(function, endpoint.input_schema)
        signature = read_signature(function, endpoint.input_schema.get("properties", {}))
        if endpoint.streams or signature.yields:
            return bind_stream(endpoint, function, plan)
        if signature.needs:
            overrides = handler.overrides
            return plan_needing_call(function, signature, plan, inline=handler.inline, overrides=overrides)
    except ContractError as error:
        return SIGNATURE.at(endpoint, "/handler/function", str(error))
    if handler.inline or is_async(function):
        return plan
    return lambda values, context: call_in_thread(plan, values, context, owner=context.agent_id or "")


class Returned(NamedTuple):
    filter: OutputFilter | None = None  # filter by the return type; None for no function or a type that says nothing
    may_be_none: bool = True  # True if None stands for an output without fields
    finding: Diagnostic | None = None  # finding that nothing is filtered


def plan_output(endpoint: Endpoint, output: Mapping[str, Any]) -> Returned:
    """Read the return type of an endpoint's function. `output` is the schema by which its outputs are checked."""
    handler = endpoint.handler
    if endpoint.builtin or endpoint.streams or not isinstance(handler, RegisteredFunction):
        return Returned()  # each item of a stream has been filtered
    function = handler.target or resolve_function(handler.function)
    assert not isinstance(function, str), "it has been bound"
    returns = read_signature(function).returns
    if returns is None or returns is NoneType:
        return Returned(OutputFilter(endpoint, returns, output))
    may_be_none, said = False, "does not say what it returns"
    if returns in (MISSING, Any, object):
        may_be_none = not (output.keys() & _CONSTRAINTS or output.get("properties"))
    else:
        try:
            closed_output(returns)
            return Returned(OutputFilter(endpoint, returns, output), may_be_none)
        except ContractError as error:
            said = f"returns {show_type(returns)}, which {error}"
    finding = OPEN_RESULT.at(
        endpoint,
        "/handler/function",
        f"{function_name(function)}() {said}, so every field of its results is sent",
        TYPE_ADVICE,
    )
    return Returned(None, may_be_none, finding)


def resolve_function(dotted: str) -> Callable[..., Any] | str:
    """Resolve a dotted path to a callable, or return what is wrong with it."""
    module_name, _, attribute = dotted.rpartition(".")
    if not module_name:
        return "a dotted path needs a module and a function, such as rooms.handlers.book_room"
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an operator's module may fail in any way
        return describe_failure(f"importing {module_name}", error)
    function: object = getattr(module, attribute, None)
    if function is None:
        return f"the module {module_name} has no {attribute}"
    if not callable(function):
        return f"{dotted} is a {type(function).__name__}, not a function"
    return function


def describe_failure(what: str, error: BaseException) -> str:
    """Describe why an operator's code failed, with the line in their code."""
    ours = (str(Path(__file__).parents[2]), str(Path(importlib.__file__).parent), "<frozen")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{what} failed{place} with {type(error).__name__}: {error}"


_logger = logging.getLogger(__name__)

Resources = Callable[[], AbstractAsyncContextManager[Any]]  # opens what handlers share; its value is `Context.state`


def read_lifespan(function: Callable[..., Any]) -> Resources:
    """Turn a generator function with one `yield` into a context manager. Raises ContractError for anything else."""
    unwrapped = inspect.unwrap(function)
    if [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]:
        raise ContractError(f"{locate(function)}: a lifespan function is called without arguments")
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function)
    if inspect.isgeneratorfunction(function):
        blocking = contextmanager(function)

        @asynccontextmanager
        async def resources() -> AsyncIterator[Any]:
            with blocking() as state:
                yield state

        return resources
    if function is not unwrapped and inspect.isasyncgenfunction(unwrapped):
        return function  # already decorated with asynccontextmanager
    raise ContractError(
        f"{locate(function)}: a lifespan function must be a generator with one `yield`: open what the handlers share, "
        "yield it, and close it after the yield"
    )


class Lifespan:
    """The resources of one process. They are opened and closed by the same task, as task groups require."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> Any:
        """Open the resources and return the value that the handlers see. Raises ConfigError if that fails."""
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(opened), name="lifespan")
        try:
            return await opened
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        except Exception as error:
            raise ConfigError(describe_failure("the lifespan function", error)) from error

    async def close(self) -> None:
        """Close the resources. Errors are logged: the server stops in any case."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task = None

    async def _hold(self, opened: asyncio.Future[Any]) -> None:
        try:
            async with self._resources() as state:
                opened.set_result(state)
                await self._closing.wait()
        except (Exception, SystemExit) as error:
            if opened.done():
                _logger.exception("the lifespan function failed while the server stopped")
            else:
                opened.set_exception(error if isinstance(error, Exception) else RuntimeError(f"exit: {error}"))
