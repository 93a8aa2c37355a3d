"""What the adapters of agent frameworks share: their packages are loaded only if they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from bespeak.agent.tools.tool_call import ToolCall
from bespeak.agent.tools.tool_result import ToolResult
from bespeak.agent.tools.tool_runner import ToolRunner
from bespeak.errors import ConfigError

Wait = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine on the event loop of a blocking client, from another thread."""


@contextmanager
def framework_needed(module: str, package: str) -> Iterator[None]:
    """Raise ConfigError with install advice if the import of a framework fails inside the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        raise ConfigError(f"These tools need the package {package}: pip install {package}") from error


async def carry_out(runner: ToolRunner, call: ToolCall, wait: Wait | None, *, agreed: bool = False) -> ToolResult:
    """Carry out a call in this event loop, or on that of a blocking client."""
    work = runner.result(call, agreed=agreed)
    if wait is None:
        return await work
    done: ToolResult = await asyncio.to_thread(wait, work)
    return done
