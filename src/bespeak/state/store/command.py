"""Commands: small programs that yield statements, are sent their rows and return a result.

A command does no input or output itself, so the same program runs on every driver. A driver runs the commands of a unit
in one transaction. A command that cannot be carried out returns a `Conflict`, and its unit is rolled back.

Statements use the SQL that SQLite and PostgreSQL share, with `?` for parameters and these placeholders:

* `{now}` - seconds since 1970 by the clock of the database, so that leases agree across machines
* `{lock}` - at the end of a SELECT: lock the rows until the transaction ends
* `{skip}` - the same, skipping rows that another transaction has locked
* `{audit_id}` - in a WHERE clause: the audit record with the id of the parameter
* `{advance TABLE}` - a whole statement: number new rows of the table behind the existing positions
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

if TYPE_CHECKING:
    from bespeak.state.store.grouping import Grouping

Row = Sequence[Any]
Rows = Sequence[Row]
Members = Mapping[str, Any] | msgspec.Struct
"""Members of a record."""


class Statement(msgspec.Struct, frozen=True, gc=False):
    """SQL with its parameters. The driver sends back the list of rows."""

    sql: str
    parameters: tuple[Any, ...] = ()


class Notify(msgspec.Struct, frozen=True, gc=False):
    """Wake every watcher of a topic, in every process, after the transaction has committed."""

    topic: str


class Seal(msgspec.Struct, frozen=True, gc=False):
    """Give a record its place in its agent's chain. The driver sends back the `Sealed` record."""

    agent_id: str
    """Agent of the record; empty for anonymous calls, which share one chain."""
    payload: Members


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A record in its place: changing, removing or moving it is detectable."""

    audit_id: str
    stream: str
    sequence: int
    agent_id: str
    jws: str


Step = Statement | Notify | Seal
Steps = Generator[Step, Any, Any]


class Conflict(msgspec.Struct, frozen=True):
    """The reason why a command was not carried out. Its unit is rolled back."""

    reason: str
    details: Mapping[str, Any] = {}


class Command(msgspec.Struct, frozen=True):
    """One named change or query."""

    guards: ClassVar[bool] = False
    """True if the command can end in a Conflict. A guard that runs first needs no savepoint: nothing has happened
    yet.
    """
    grouping: ClassVar[Grouping | None] = None
    """How PostgreSQL runs many of these in one statement; None to run them one by one."""

    def steps(self) -> Steps:
        """Yield statements, receive their rows and return the result."""
        raise NotImplementedError


class Sealer(Protocol):
    """Seals the records of one process, in the order in which its transactions commit."""

    def knows(self, agent_id: str) -> bool:
        """Return True if the head of the agent's chain is in memory."""
        ...

    def learn(self, agent_id: str, audit_id: str | None) -> None:
        """Store the agent's latest record; None if it has no records."""
        ...

    def seal(self, agent_id: str, payload: Members) -> Sealed:
        """Return the record with its place, id and signature."""
        ...

    def keep(self) -> None:
        """Mark everything sealed since the last call as committed."""
        ...

    def discard(self) -> None:
        """Forget everything sealed since the last call of `keep`; it was not committed."""
        ...
