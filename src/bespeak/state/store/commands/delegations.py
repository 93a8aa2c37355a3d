"""Delegations: who gave which authority to whom, so that a chain can be rebuilt."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Statement, Steps

_COLUMNS: Final = "delegation_id, delegator, delegate, scope, parent, task, created, expires"
_LONGEST: Final = 64
"""Limit of hops when a chain is rebuilt; deeper chains are never granted."""


class Delegation(msgspec.Struct, frozen=True):
    """One hop of a delegation chain."""

    delegation_id: str
    delegator: str
    delegate: str
    scope: str
    """Scope tokens in the notation of Authority-Scope."""
    parent: str | None
    """Delegation whose authority was passed on; None if the delegator held it directly."""
    task: str | None
    created: float
    expires: float


class PurgeDelegations(Command, frozen=True):
    """Remove expired hops after a retention period; the audit trail keeps the records of their use."""

    kept: float
    """Seconds for which they are kept after their end."""
    limit: int = 200

    def steps(self) -> Steps:
        """Return the number of removed hops."""
        rows = yield Statement(
            "DELETE FROM delegations WHERE delegation_id IN "
            "(SELECT delegation_id FROM delegations WHERE expires <= {now} - ? LIMIT ? {skip}) RETURNING 1",
            (self.kept, self.limit),
        )
        return len(rows)


class RecordDelegation(Command, frozen=True):
    """Store a hop."""

    guards: ClassVar[bool] = True
    delegation_id: str
    delegator: str
    delegate: str
    scope: str
    parent: str | None
    task: str | None
    expires: float

    def steps(self) -> Steps:
        """Return True, or a Conflict `delegation-known` if the id exists."""
        rows = yield Statement(
            "INSERT INTO delegations (delegation_id, delegator, delegate, scope, parent, task, created, expires) "
            "VALUES (?, ?, ?, ?, ?, ?, {now}, ?) ON CONFLICT (delegation_id) DO NOTHING RETURNING 1",
            (self.delegation_id, self.delegator, self.delegate, self.scope, self.parent, self.task, self.expires),
        )
        return True if rows else Conflict("delegation-known", {"delegation_id": self.delegation_id})


class ReadDelegation(Command, frozen=True):
    """Read a hop by its id."""

    delegation_id: str

    def steps(self) -> Steps:
        """Return a Delegation or None."""
        sql = f"SELECT {_COLUMNS} FROM delegations WHERE delegation_id = ?"
        rows = yield Statement(sql, (self.delegation_id,))
        return Delegation(*rows[0]) if rows else None


class ReadDelegationChain(Command, frozen=True):
    """Read the hops that lead to a delegation, first delegator first."""

    delegation_id: str

    def steps(self) -> Steps:
        """Return Delegations; empty if the id is unknown."""
        chain: list[Delegation] = []
        wanted: str | None = self.delegation_id
        while wanted is not None and len(chain) < _LONGEST:
            found = yield from ReadDelegation(wanted).steps()
            if found is None:
                break
            chain.append(found)
            wanted = found.parent
        chain.reverse()
        return chain
