"""Delegations: who handed which authority to whom, so that a chain can be rebuilt."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Statement, Steps

_COLUMNS: Final = "delegation_id, delegator, delegate, scope, parent, task, created, expires"
_LONGEST: Final = 64
"""Hops of a chain that is rebuilt; no deeper one is ever granted."""


class Delegation(msgspec.Struct, frozen=True):
    """One hop."""

    delegation_id: str
    delegator: str
    delegate: str
    scope: str
    """Tokens as Authority-Scope writes them."""
    parent: str | None
    """The delegation whose authority was handed on; None for the delegator's own."""
    task: str | None
    created: float
    expires: float


class PurgeDelegations(Command, frozen=True):
    """Remove hops that ended a while ago; the records of what was done with them stay in the trail."""

    kept: float
    """Seconds for which they are kept beyond their end."""
    limit: int = 200

    def steps(self) -> Steps:
        """How many there were."""
        rows = yield Statement(
            "DELETE FROM delegations WHERE delegation_id IN "
            "(SELECT delegation_id FROM delegations WHERE expires <= {now} - ? LIMIT ? {skip}) RETURNING 1",
            (self.kept, self.limit),
        )
        return len(rows)


class RecordDelegation(Command, frozen=True):
    """Keep a hop."""

    guards: ClassVar[bool] = True
    delegation_id: str
    delegator: str
    delegate: str
    scope: str
    parent: str | None
    task: str | None
    expires: float

    def steps(self) -> Steps:
        """True, or a Conflict `delegation-known` if there is one of that id."""
        rows = yield Statement(
            "INSERT INTO delegations (delegation_id, delegator, delegate, scope, parent, task, created, expires) "
            "VALUES (?, ?, ?, ?, ?, ?, {now}, ?) ON CONFLICT (delegation_id) DO NOTHING RETURNING 1",
            (self.delegation_id, self.delegator, self.delegate, self.scope, self.parent, self.task, self.expires),
        )
        return True if rows else Conflict("delegation-known", {"delegation_id": self.delegation_id})


class ReadDelegation(Command, frozen=True):
    """A hop by its id."""

    delegation_id: str

    def steps(self) -> Steps:
        """A Delegation or None."""
        sql = f"SELECT {_COLUMNS} FROM delegations WHERE delegation_id = ?"
        rows = yield Statement(sql, (self.delegation_id,))
        return Delegation(*rows[0]) if rows else None


class ReadDelegationChain(Command, frozen=True):
    """The hops that lead to a delegation, from the first delegator on."""

    delegation_id: str

    def steps(self) -> Steps:
        """Delegations; none if the id is unknown."""
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
