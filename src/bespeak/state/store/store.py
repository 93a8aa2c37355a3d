"""The interface of the store: units of commands that are carried out completely or not at all."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.command import Command, Conflict, Sealer

Then = Callable[[Sequence[Any]], Sequence[Command]]
"""Callback that makes more commands of a unit from the first results, inside the same transaction. It must not wait."""

Watcher = Callable[[], None]


class Store(ABC):
    """State that outlives a request."""

    sole: bool
    """True if no other process changes the data this one holds in memory; claims then need no row of their own."""

    lasting: bool = True
    """True if the data outlives the process."""

    @abstractmethod
    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        """Run all commands in one transaction and return after its commit.

        Returns the results in order, followed by those of `then`; or the Conflict, after which nothing has happened.
        Raises `StoreUnavailableError` if the store cannot answer; the outcome is then unknown.
        """

    @abstractmethod
    async def read(self, command: Command) -> Any:
        """Return the result of a read-only command."""

    def look(self, command: Command) -> Any:
        """Read one row by its key at once; only a `sole` store supports this."""
        raise StoreError("this store is shared and cannot be read without waiting")

    @abstractmethod
    def attach(self, sealer: Sealer) -> None:
        """Use this sealer for the records of this process. Records cannot be sealed before."""

    @abstractmethod
    def watch(self, topic: str, watcher: Watcher) -> None:
        """Call `watcher` in the loop after changes of a topic by any process; spurious calls are possible."""

    @abstractmethod
    async def start(self) -> None:
        """Start working in the running loop."""

    @abstractmethod
    async def close(self) -> None:
        """Finish running work and release all resources."""


def level_of(error: StoreError) -> int:
    """Return the level at which work that is tried again logs an error. A store reports once that it is unavailable;
    what waits for it need not repeat that.
    """
    return logging.INFO if isinstance(error, StoreUnavailableError) else logging.WARNING
