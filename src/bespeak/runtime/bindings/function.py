"""Registered functions: a Python callable, given directly or by its dotted path (AGTP-API 12.2)."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any

from bespeak.checks.lint.rules.handler import NOT_IMPORTABLE, SIGNATURE
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction
from bespeak.errors import ContractError
from bespeak.protocol.exchange.context import Context
from bespeak.runtime.functions.adapted_type import Adapted
from bespeak.runtime.functions.calling import HandlerCall, plan_call
from bespeak.runtime.functions.signature import read_signature
from bespeak.runtime.threads import run_in_thread
from bespeak.text.diagnostics.diagnostic import Diagnostic


def bind_function(endpoint: Endpoint, handler: RegisteredFunction) -> HandlerCall | Diagnostic:
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
    except ContractError as error:
        return SIGNATURE.at(endpoint, "/handler/function", str(error))
    returns = read_signature(function).returns
    if isinstance(returns, Adapted):
        plan = _dumping(plan, returns)
    return _in_thread(plan) if handler.blocking else plan


def _dumping(call: HandlerCall, returns: Adapted) -> HandlerCall:
    """Make a call return JSON data with the names that the type of its result publishes."""

    async def dump_later(result: Awaitable[Any]) -> Any:
        return returns.dump(await result)

    def run(values: dict[str, Any], context: Context) -> Any:
        result = call(values, context)
        return dump_later(result) if isawaitable(result) else returns.dump(result)

    return run


def _in_thread(call: HandlerCall) -> HandlerCall:
    async def run(values: dict[str, Any], context: Context) -> Any:
        return await run_in_thread(call, values, context)

    return run


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
    ours = str(Path(__file__).parents[2])
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((ours, "<frozen"))
    ]
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{what} failed{place} with {type(error).__name__}: {error}"
