"""Nonces: values that may be used once."""

from __future__ import annotations

from typing import ClassVar

from bespeak.state.store.command import Command, Conflict, Statement, Steps
from bespeak.state.store.grouping import Grouping


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
    retention: float
    """Seconds for which it must not be used again."""

    def steps(self) -> Steps:
        """Return True or a Conflict."""
        rows = yield Statement(
            "INSERT INTO nonces (kind, value, expires) VALUES (?, ?, {now} + ?) "
            "ON CONFLICT (kind, value) DO UPDATE SET expires = excluded.expires WHERE nonces.expires <= {now} "
            "RETURNING 1",
            (self.kind, self.value, self.retention),
        )
        return True if rows else Conflict("nonce-used")
