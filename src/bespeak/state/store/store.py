"""The interface of the store: commands, and units of them that are carried out completely or not at all.

A command is a small program that yields statements, is sent their rows and returns a result. A `Grouping` says how
many commands of one kind become one statement on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeVar

import msgspec

from bespeak.errors import StoreError, StoreUnavailableError

AGAIN: Final = object()  # result of the first command of a unit that has to run again by itself


@dataclass(frozen=True, slots=True)
class Grouping:
    """A change of many rows at once, and its result for each command.

    In its SQL `{now}` is the clock, `{input}` a table with a row for each command (columns: `fields`, and `n`, the
    number of the command from 1), `{parts}` one with a row for each part of each command, and `{change}` the rows that
    the change returns.
    """

    fields: Mapping[str, str]  # attributes of a command that the statement needs, with their PostgreSQL types
    change: str  # INSERT, UPDATE or DELETE statement, or a SELECT that locks rows
    result: Callable[[Any, Sequence[Any] | None], Any]  # from a command's row of `answer`, or None, to its result
    answer: str | None = None
    """SELECT with the number of the command in its first column, `n`; None if there is no result."""
    rows: Callable[[Any], Collection[Hashable]] | None = None
    """Rows that a command changes: commands that change the same row do not share a statement."""
    shared: Callable[[Any], Hashable] | None = None
    """Row that a command only needs to stay as it is: commands that change it do not share a statement with it."""
    seal: Callable[[Any], tuple[str, Any]] | None = None
    """Agent and payload to seal; the `Sealed` record then takes the command's place in the other functions."""
    independent: bool = False  # True if a guard may follow others in a unit: they change nothing that it judges
    single: bool = False  # True if a command is grouped only when it is its whole unit
    parts: tuple[str, Mapping[str, str]] | None = None
    """Attribute with a command's parts, and the attributes of a part that the statement needs, with their types."""
    after: str | None = None  # second INSERT, UPDATE or DELETE, which may use `{change}`
    topics: Callable[[Any], Collection[str]] | None = None  # topics to notify after the change of a command


Row = Sequence[Any]
Rows = Sequence[Row]
Members = Mapping[str, Any] | msgspec.Struct  # members of a record


class Statement(msgspec.Struct, frozen=True, gc=False):
    """SQL with its parameters. The driver sends back the list of rows."""

    sql: str
    parameters: tuple[Any, ...] = ()


class Notify(msgspec.Struct, frozen=True, gc=False):
    """Wake every watcher of a topic, in every process, after the transaction has committed."""

    topic: str


class Seal(msgspec.Struct, frozen=True, gc=False):
    """Give a record its place in its agent's chain. The driver sends back the `Sealed` record."""

    agent_id: str  # Agent of the record; empty for anonymous calls, which share one chain
    payload: Members


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A record in its place: changing, removing or moving it is detectable."""

    audit_id: str
    stream: str
    sequence: int
    agent_id: str
    jws: str


_T = TypeVar("_T")
Step = Statement | Notify | Seal
Result = Generator[Step, Any, _T]  # steps of a command whose result has a type
Steps = Result[Any]


class Conflict(msgspec.Struct, frozen=True):
    """The reason why a command was not carried out. Its unit is rolled back."""

    reason: str
    details: Mapping[str, Any] = {}
    position: int = 0  # of the command in its unit, which is not compared

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conflict) and (self.reason, self.details) == (other.reason, other.details)

    def __hash__(self) -> int:
        return hash(self.reason)


class Command(msgspec.Struct, frozen=True):
    """One named change or query."""

    guards: ClassVar[bool] = False
    """True if the command can end in a Conflict. A guard that runs first needs no savepoint: nothing has happened
    yet.
    """
    grouping: ClassVar[Grouping | None] = None  # None if PostgreSQL runs them one by one

    def steps(self) -> Steps:
        """Yield statements, receive their rows and return the result."""
        raise NotImplementedError


def read_one(kind: Callable[..., _T], sql: str, *parameters: Any) -> Result[_T | None]:
    """Run a query and return its first row as a value; None if there is none."""
    rows = yield Statement(sql, parameters)
    return kind(*rows[0]) if rows else None


def read_all(kind: Callable[..., _T], sql: str, *parameters: Any) -> Result[list[_T]]:
    rows = yield Statement(sql, parameters)
    return [kind(*row) for row in rows]


def read_number(sql: str, *parameters: Any) -> Result[int]:
    """Run a query and return the number in its only row."""
    rows = yield Statement(sql, parameters)
    number: int = rows[0][0]
    return number


class Sealer(Protocol):
    """Seals the records of one process, in the order in which its transactions commit."""

    def knows(self, agent_id: str) -> bool: ...  # True if the head of the agent's chain is in memory
    def learn(self, agent_id: str, audit_id: str | None) -> None: ...  # takes the agent's latest record, if it has one
    def seal(self, agent_id: str, payload: Members) -> Sealed: ...  # returns the record with place, id and signature
    def keep(self) -> None: ...  # everything sealed since the last call is committed
    def discard(self) -> None: ...  # everything sealed since the last call of `keep` was not committed


Then = Callable[[Sequence[Any]], Sequence[Command]]
"""Callback that makes more commands of a unit from the first results, inside the same transaction. It must not wait."""

Watcher = Callable[[], None]


class Store(ABC):
    """State that outlives a request."""

    sole: bool  # True if no other process changes what this one holds in memory; claims then need no row

    lasting: bool = True  # True if the data outlives the process

    def __init__(self) -> None:
        self._watchers: dict[str, list[Watcher]] = {}

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

    def watch(self, topic: str, watcher: Watcher) -> None:
        """Call `watcher` in the loop after changes of a topic by any process; spurious calls are possible."""
        self._watchers.setdefault(topic, []).append(watcher)

    def _tell(self, *topics: str) -> None:
        for topic in topics:
            for watcher in self._watchers.get(topic, ()):
                watcher()

    @abstractmethod
    async def start(self) -> None:
        """Start working in the running loop."""

    @abstractmethod
    async def close(self) -> None:
        """Finish running work and release all resources."""


def level_of(error: StoreError) -> int:
    """Return the level at which retried work logs an error: a store reports once that it is unavailable."""
    return logging.INFO if isinstance(error, StoreUnavailableError) else logging.WARNING


class Unit:
    __slots__ = ("commands", "future", "outcome", "then", "topics")

    def __init__(self, commands: Sequence[Command], then: Then | None, future: asyncio.Future[Any]) -> None:
        self.commands = commands
        self.then = then
        self.future = future
        self.outcome: Sequence[Any] | Conflict | BaseException = ()
        self.topics: set[str] = set()

    @property
    def needs_savepoint(self) -> bool:
        """True if it may end in a conflict after something was written."""
        return self.then is not None or any(command.guards for command in self.commands[1:])

    def settle(self) -> None:
        """Settle the future, in its loop."""
        if self.future.done():  # whoever waited has gone
            return
        if isinstance(self.outcome, BaseException):
            self.future.set_exception(self.outcome)
        else:
            self.future.set_result(self.outcome)


def run_unit(
    unit: Unit, execute: Callable[[Statement], Rows], seal: Callable[[Seal], Sealed]
) -> Sequence[Any] | Conflict:
    topics = unit.topics
    topics.clear()  # an earlier attempt may have left some
    results: list[Any] = []
    for command in unit.commands:
        result = run_command(command, topics, execute, seal)
        if type(result) is Conflict:
            return msgspec.structs.replace(result, position=len(results)) if results else result
        results.append(result)
    if unit.then is not None:
        for command in unit.then(results):
            result = run_command(command, topics, execute, seal)
            if type(result) is Conflict:
                return result
            results.append(result)
    return results


def run_command(
    command: Command, topics: set[str], execute: Callable[[Statement], Rows], seal: Callable[[Seal], Sealed]
) -> Any:
    program = command.steps()
    given: Any = None
    try:
        while True:
            step = program.send(given)
            if isinstance(step, Statement):
                given = execute(step)
            elif isinstance(step, Seal):
                given = seal(step)
            else:
                topics.add(step.topic)
                given = None
    except StopIteration as end:
        return end.value
