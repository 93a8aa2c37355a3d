"""Context managers that `connect` returns, and their message if a client is used outside its block."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
ClientT = TypeVar("ClientT")


class _Block:
    """Context manager without client methods: `connect(uri).call(...)` raises an error that shows the right form."""

    _form: str

    if not TYPE_CHECKING:  # It would hide attribute errors from type checkers.

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{name!r} is available only inside the block: write `{self._form}`.")


class AsyncBlock(_Block, AbstractAsyncContextManager[ClientT], Generic[ClientT]):
    """Opens a client for an `async with` block."""

    _form = "async with bespeak.connect(uri) as service:"

    def __init__(self, context: AbstractAsyncContextManager[ClientT]) -> None:
        self._context = context

    async def __aenter__(self) -> ClientT:
        return await self._context.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._context.__aexit__(kind, error, trace)


class Block(_Block, AbstractContextManager[ClientT], Generic[ClientT]):
    """Opens a client for a `with` block."""

    _form = "with bespeak.connect_sync(uri) as service:"

    def __init__(self, context: AbstractContextManager[ClientT]) -> None:
        self._context = context

    def __enter__(self) -> ClientT:
        return self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._context.__exit__(kind, error, trace)


def async_block(opener: Callable[P, AbstractAsyncContextManager[ClientT]]) -> Callable[P, AsyncBlock[ClientT]]:
    """Make an opener return an AsyncBlock."""

    @functools.wraps(opener)
    def opened(*arguments: P.args, **options: P.kwargs) -> AsyncBlock[ClientT]:
        return AsyncBlock(opener(*arguments, **options))

    return opened


def block(opener: Callable[P, AbstractContextManager[ClientT]]) -> Callable[P, Block[ClientT]]:
    """Make an opener return a Block."""

    @functools.wraps(opener)
    def opened(*arguments: P.args, **options: P.kwargs) -> Block[ClientT]:
        return Block(opener(*arguments, **options))

    return opened
