"""Lifespan of a service: what its handlers share, opened before the first call and closed after the last one."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from bespeak.errors import ConfigError, ContractError
from bespeak.runtime.bindings.function import describe_failure
from bespeak.runtime.functions.reading import locate

_logger = logging.getLogger(__name__)

Resources = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens what the handlers share. The value of the context manager is `Context.state`."""


def read_lifespan(function: Callable[..., Any]) -> Resources:
    """Turn a generator function with one `yield` into a context manager. Raises ContractError for anything else."""
    unwrapped = inspect.unwrap(function)
    if [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]:
        raise ContractError(f"{locate(function)}: a lifespan function is called without arguments")
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function)
    if inspect.isgeneratorfunction(function):
        return functools.partial(_blocking, contextmanager(function))
    if function is not unwrapped and inspect.isasyncgenfunction(unwrapped):
        return function  # already decorated with asynccontextmanager
    raise ContractError(
        f"{locate(function)}: a lifespan function must be a generator with one `yield`: open what the handlers share, "
        "yield it, and close it after the yield"
    )


@asynccontextmanager
async def _blocking(resources: Callable[[], Any]) -> AsyncIterator[Any]:
    with resources() as state:
        yield state


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
