"""What a command is: a small program that yields statements, is sent their rows and returns a result.

It does no input or output itself, so the same program runs on every driver. A driver runs the commands of a unit in one
transaction; a command that cannot be carried out returns a `Conflict`, and then nothing of its unit happens.

Statements are written in the SQL that SQLite and PostgreSQL share, with `?` for parameters and these words in braces:

* `{now}` - seconds since 1970 by the clock of the database, so that leases of several machines mean the same
* `{lock}` - at the end of a SELECT: nobody else changes the row before the transaction ends
* `{skip}` - the same, leaving out the rows somebody else holds
* `{advance TABLE}` - a whole statement: new rows of the table are numbered behind those that were given a position
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

if TYPE_CHECKING:
    from bespeak.state.store.grouping import Grouping

Row = Sequence[Any]
Rows = Sequence[Row]


class Statement(msgspec.Struct, frozen=True, gc=False):
    """SQL with its parameters. What is sent back is the list of its rows."""

    sql: str
    parameters: tuple[Any, ...] = ()


class Notify(msgspec.Struct, frozen=True, gc=False):
    """Wake everybody who watches a topic, in every process, once the transaction has committed."""

    topic: str


class Seal(msgspec.Struct, frozen=True, gc=False):
    """Give a record its place in its agent's chain. What is sent back is the `Sealed` record."""

    agent_id: str
    """Empty for anonymous calls, which share one chain."""
    payload: Mapping[str, Any]


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A record in its place: nothing of it can be changed, left out or moved without notice."""

    audit_id: str
    stream: str
    sequence: int
    agent_id: str
    jws: str


Step = Statement | Notify | Seal
Steps = Generator[Step, Any, Any]


class Conflict(msgspec.Struct, frozen=True):
    """Why a command was not carried out. Its unit is rolled back."""

    reason: str
    details: Mapping[str, Any] = {}


class Command(msgspec.Struct, frozen=True):
    """One named change or question."""

    guards: ClassVar[bool] = False
    """Whether it can end in a Conflict. A guard that comes first needs no savepoint: nothing has happened yet."""
    grouping: ClassVar[Grouping | None] = None
    """How PostgreSQL runs many of these in one statement; None: one by one."""

    def steps(self) -> Steps:
        """The program."""
        raise NotImplementedError


class Sealer(Protocol):
    """Seals the records of one process, in the order in which its transactions commit."""

    def knows(self, agent_id: str) -> bool:
        """Whether the head of the agent's chain is at hand."""
        ...

    def learn(self, agent_id: str, audit_id: str | None) -> None:
        """The latest record of the agent in the store, None if there is none."""
        ...

    def seal(self, agent_id: str, payload: Mapping[str, Any]) -> Sealed:
        """The record with its place, id and signature."""
        ...

    def keep(self) -> None:
        """What was sealed since the last call has been committed."""
        ...

    def discard(self) -> None:
        """What was sealed since the last call of `keep` is lost: go back to where that was."""
        ...
