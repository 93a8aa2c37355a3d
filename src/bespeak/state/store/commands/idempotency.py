"""Idempotency keys and nonces: which process works on a request, the answer it got, and values used once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Final

import msgspec

from bespeak.state.store.store import AGAIN, Command, Conflict, Grouping, Result, Row, Statement, Steps


class Claimed(msgspec.Struct, frozen=True, gc=False):
    """The caller holds the key until the lease ends; the fence tells this claim from later ones."""

    fence: int


class Recorded(msgspec.Struct, frozen=True, gc=False):
    request_hash: bytes
    answer: bytes


class InProgress(msgspec.Struct, frozen=True, gc=False):
    """The request is in progress elsewhere; `seconds` is the rest of the lease."""

    request_hash: bytes
    seconds: float


_INTO: Final = "INSERT INTO idempotency (scope, key, request_hash, fence, lease, answer, expires)"
_OVER: Final = """
ON CONFLICT (scope, key) DO UPDATE SET
    request_hash = excluded.request_hash, fence = idempotency.fence + 1, lease = excluded.lease,
    answer = excluded.answer, expires = excluded.expires
"""
_MAY_CLAIM: Final = """
WHERE idempotency.expires <= {now}
   OR (idempotency.answer IS NULL AND idempotency.lease <= {now} AND idempotency.request_hash = excluded.request_hash)
"""
_MAY_RECORD: Final = "WHERE idempotency.expires <= {now} OR idempotency.answer IS NULL"
_CLAIM: Final = f"{_INTO} VALUES (?, ?, ?, 1, {{now}} + ?, NULL, {{now}} + ?) {_OVER} {_MAY_CLAIM} RETURNING fence"
_RECORD: Final = f"{_INTO} VALUES (?, ?, ?, 1, 0, ?, {{now}} + ?) {_OVER} {_MAY_RECORD} RETURNING 1"
# In order, so that two processes that take the same keys do not wait for each other.
_MANY: Final = "FROM {input} ORDER BY scope, key"
_CLAIM_MANY: Final = (
    f"{_INTO} SELECT scope, key, request_hash, 1, {{now}} + lease, NULL, {{now}} + retention "
    f"{_MANY} {_OVER} {_MAY_CLAIM} RETURNING scope, key, fence"
)
_RECORD_MANY: Final = (
    f"{_INTO} SELECT scope, key, request_hash, 1, 0, answer, {{now}} + retention "
    f"{_MANY} {_OVER} {_MAY_RECORD} RETURNING scope, key"
)
_LOOK: Final = (
    "SELECT request_hash, answer, lease - {now} FROM idempotency WHERE scope = ? AND key = ? AND expires > {now}"
)


def _rows(command: Any) -> tuple[Hashable]:
    return (("idempotency", command.scope, command.key),)


def _held(_: Any, row: Row | None) -> Any:
    return True if row is not None else Conflict("lease-lost")


def _claim(_: Any, row: Row | None) -> Any:
    if row is None:  # another process has taken it since the statement began
        return AGAIN
    _, fence, request_hash, answer, seconds = row
    if fence is not None:
        return Claimed(fence)
    return InProgress(request_hash, max(0.0, seconds)) if answer is None else Recorded(request_hash, answer)


class ClaimKey(Command, frozen=True):
    """Claim a key or report who holds it. A claim with an expired lease is taken over; an expired key is forgotten."""

    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"scope": "text", "key": "text", "request_hash": "bytea", "lease": "float8", "retention": "float8"},
        change=_CLAIM_MANY,
        answer="""
            SELECT i.n, c.fence, k.request_hash, k.answer, k.lease - {now}
            FROM {input} AS i LEFT JOIN {change} AS c USING (scope, key)
            LEFT JOIN idempotency AS k ON k.scope = i.scope AND k.key = i.key AND k.expires > {now} AND c.fence IS NULL
            WHERE c.fence IS NOT NULL OR k.fence IS NOT NULL
        """,
        result=_claim,
        rows=_rows,
        single=True,
    )
    scope: str  # owner of the key and the endpoint it is for
    key: str
    request_hash: bytes
    lease: float  # lease in seconds
    retention: float  # seconds for which the key is remembered

    def steps(self) -> Steps:
        """Return Claimed, Recorded or InProgress; the last two carry the hash of their request."""
        rows = yield Statement(_CLAIM, (self.scope, self.key, self.request_hash, self.lease, self.retention))
        if rows:
            return Claimed(rows[0][0])
        rows = yield Statement(_LOOK, (self.scope, self.key))
        if not rows:  # it expired between the two
            return InProgress(self.request_hash, 0.0)
        request_hash, answer, seconds = rows[0]
        return InProgress(request_hash, max(0.0, seconds)) if answer is None else Recorded(request_hash, answer)


class FindKey(Command, frozen=True):
    """Find the recorded answer of a key, for a process that holds its claims in memory."""

    scope: str
    key: str

    def steps(self) -> Steps:
        """Return Recorded, InProgress of another process, or None."""
        rows = yield Statement(_LOOK, (self.scope, self.key))
        if not rows:
            return None
        request_hash, answer, seconds = rows[0]
        if answer is not None:
            return Recorded(request_hash, answer)
        return InProgress(request_hash, seconds) if seconds > 0 else None


class ListKeys(Command, frozen=True):
    """List the scopes and keys that have not expired, up to a limit."""

    limit: int

    def steps(self) -> Steps:
        return (yield Statement("SELECT scope, key FROM idempotency WHERE expires > {now} LIMIT ?", (self.limit,)))


class FinishKey(Command, frozen=True):
    """Record the answer under a claim; a Conflict if the claim was taken over."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"scope": "text", "key": "text", "fence": "bigint", "answer": "bytea", "retention": "float8"},
        change="""
            UPDATE idempotency AS k SET answer = i.answer, expires = {now} + i.retention FROM {input} AS i
            WHERE k.scope = i.scope AND k.key = i.key AND k.fence = i.fence AND k.answer IS NULL RETURNING i.n
        """,
        answer="SELECT n FROM {change}",
        result=_held,
        rows=_rows,
    )
    scope: str
    key: str
    fence: int
    answer: bytes
    retention: float

    def steps(self) -> Steps:
        rows = yield Statement(
            "UPDATE idempotency SET answer = ?, expires = {now} + ? "
            "WHERE scope = ? AND key = ? AND fence = ? AND answer IS NULL RETURNING 1",
            (self.answer, self.retention, self.scope, self.key, self.fence),
        )
        return True if rows else Conflict("lease-lost")


class RecordKey(Command, frozen=True):
    """Record the answer of a key that was claimed in memory only; a Conflict if it has an answer."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"scope": "text", "key": "text", "request_hash": "bytea", "answer": "bytea", "retention": "float8"},
        change=_RECORD_MANY,
        answer="SELECT i.n FROM {input} AS i JOIN {change} AS c USING (scope, key)",
        result=_held,
        rows=_rows,
    )
    scope: str
    key: str
    request_hash: bytes
    answer: bytes
    retention: float

    def steps(self) -> Steps:
        # For bytes, Python's sqlite3 looks for an adapter, which takes longer than binding them; bytearray is bound.
        request_hash, answer = bytearray(self.request_hash), bytearray(self.answer)
        rows = yield Statement(_RECORD, (self.scope, self.key, request_hash, answer, self.retention))
        return True if rows else Conflict("lease-lost")


class ReleaseKey(Command, frozen=True):
    """Release a claim, so that the request can be retried at once."""

    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"scope": "text", "key": "text", "fence": "bigint"},
        change="""
            DELETE FROM idempotency AS k USING {input} AS i
            WHERE k.scope = i.scope AND k.key = i.key AND k.fence = i.fence AND k.answer IS NULL
        """,
        result=lambda _, __: None,
        rows=_rows,
    )
    scope: str
    key: str
    fence: int

    def steps(self) -> Result[None]:
        yield Statement(
            "DELETE FROM idempotency WHERE scope = ? AND key = ? AND fence = ? AND answer IS NULL",
            (self.scope, self.key, self.fence),
        )


class RenewKey(Command, frozen=True):
    scope: str
    key: str
    fence: int
    lease: float

    def steps(self) -> Steps:
        """Return False if the claim was taken over."""
        rows = yield Statement(
            "UPDATE idempotency SET lease = {now} + ? WHERE scope = ? AND key = ? AND fence = ? AND answer IS NULL "
            "RETURNING 1",
            (self.lease, self.scope, self.key, self.fence),
        )
        return bool(rows)


class UseNonce(Command, frozen=True):
    """Use a value; a Conflict if it was used before and has not expired."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"kind": "text", "value": "text", "retention": "float8"},
        change="""
            INSERT INTO nonces (kind, value, expires)
            SELECT kind, value, {now} + retention FROM {input} ORDER BY kind, value
            ON CONFLICT (kind, value) DO UPDATE SET expires = excluded.expires WHERE nonces.expires <= {now}
            RETURNING kind, value
        """,
        answer="SELECT i.n FROM {input} AS i JOIN {change} AS c USING (kind, value)",
        result=lambda _, row: True if row is not None else Conflict("nonce-used"),
        rows=lambda command: (("nonces", command.kind, command.value),),
    )
    kind: str
    value: str
    retention: float  # seconds for which it must not be used again

    def steps(self) -> Steps:
        rows = yield Statement(
            "INSERT INTO nonces (kind, value, expires) VALUES (?, ?, {now} + ?) "
            "ON CONFLICT (kind, value) DO UPDATE SET expires = excluded.expires WHERE nonces.expires <= {now} "
            "RETURNING 1",
            (self.kind, self.value, self.retention),
        )
        return True if rows else Conflict("nonce-used")
