"""The store as everybody sees it: units of commands that are carried out whole or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from bespeak.errors import StoreError
from bespeak.state.store.command import Command, Conflict, Sealer

Then = Callable[[Sequence[Any]], Sequence[Command]]
"""More commands of a unit, made from the results of the first ones inside the same transaction. It only computes."""

Watcher = Callable[[], None]


class Store(ABC):
    """What must outlive a request."""

    sole: bool
    """Whether no other process changes what this one holds in memory: claims then need no row of their own."""

    @abstractmethod
    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        """Carry out all commands in one transaction; it is committed when this returns.

        The results in order, those of `then` behind them; or the Conflict, after which nothing has happened.
        Raises `StoreUnavailableError` when the store cannot answer; whether it happened is then unknown.
        """

    @abstractmethod
    async def read(self, command: Command) -> Any:
        """The result of a command that only reads."""

    def look(self, command: Command) -> Any:
        """The result of a command that reads one row by its key, at once; only a store that is `sole` can do that."""
        raise StoreError("this store is shared, so nothing of it can be read without waiting")

    @abstractmethod
    def attach(self, sealer: Sealer) -> None:
        """Use this sealer for the records of this process. Before that nothing can be sealed."""

    @abstractmethod
    def watch(self, topic: str, watcher: Watcher) -> None:
        """Call `watcher` in the loop after changes of a topic, by whichever process; more often than needed, if so."""

    @abstractmethod
    async def start(self) -> None:
        """Begin to work in the running loop."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what is under way and let go of everything."""
