"""API keys: whose they are, what they grant and until when. The store has the digest of a key, never the key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from bespeak.state.store.commands.agents import TOPIC
from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Steps, read_all

REVISION: Final = "api_keys"  # topic of the number of changes, which `ReadRevision` reads
_CHANGED: Final = Statement(
    "INSERT INTO revisions (topic, revision, updated) VALUES (?, 1, {now}) "
    "ON CONFLICT (topic) DO UPDATE SET revision = revisions.revision + 1, updated = excluded.updated",
    (REVISION,),
)


class ApiKeyRow(msgspec.Struct, frozen=True):
    key_id: str
    digest: bytes  # SHA-256 of the secret
    agent_id: str
    agent: str  # name of the agent when the key was made
    scopes: str  # scope tokens in the notation of Authority-Scope
    name: str
    created: float
    expires: float | None  # end in seconds since 1970; that of a revoked key is not later than its revocation
    revoked: float | None
    last_used: float | None

    def state(self, now: float) -> str:
        if self.revoked is not None:
            return "revoked"
        return "active" if self.expires is None or now < self.expires else "expired"


class AddApiKey(Command, frozen=True):
    guards: ClassVar[bool] = True
    key_id: str
    digest: bytes
    agent_id: str
    agent: str
    scopes: str
    name: str
    lifetime: float | None  # seconds; None for a key that does not end

    def steps(self) -> Steps:
        """Return True, or a Conflict `key-known` if the id exists."""
        end = "NULL" if self.lifetime is None else "{now} + ?"
        rows = yield Statement(
            "INSERT INTO api_keys (key_id, digest, agent_id, agent, scopes, name, created, expires) "
            f"VALUES (?, ?, ?, ?, ?, ?, {{now}}, {end}) ON CONFLICT (key_id) DO NOTHING RETURNING 1",
            (
                *(self.key_id, self.digest, self.agent_id, self.agent, self.scopes, self.name),
                *(() if self.lifetime is None else (self.lifetime,)),
            ),
        )
        if not rows:
            return Conflict("key-known", {"key_id": self.key_id})
        yield _CHANGED
        yield Notify(TOPIC)
        return True


class RevokeApiKey(Command, frozen=True):
    """End a key now and for ever."""

    guards: ClassVar[bool] = True
    key_id: str

    def steps(self) -> Steps:
        """Return True, False if it was revoked before, or a Conflict `key-unknown`."""
        rows = yield Statement("SELECT revoked FROM api_keys WHERE key_id = ? {lock}", (self.key_id,))
        if not rows:
            return Conflict("key-unknown", {"key_id": self.key_id})
        if rows[0][0] is not None:
            return False
        yield Statement(
            "UPDATE api_keys SET revoked = {now}, "
            "expires = CASE WHEN expires < {now} THEN expires ELSE {now} END WHERE key_id = ?",
            (self.key_id,),
        )
        yield _CHANGED
        yield Notify(TOPIC)
        return True


class ListApiKeys(Command, frozen=True):
    def steps(self) -> Result[list[ApiKeyRow]]:
        columns = ", ".join(ApiKeyRow.__struct_fields__)
        return read_all(ApiKeyRow, f"SELECT {columns} FROM api_keys ORDER BY created, key_id")


class NoteKeyUses(Command, frozen=True):
    """Record when keys were used, unless another process has just done so. No watcher needs to know."""

    uses: Mapping[str, float]  # times in seconds since 1970, by key id
    every: float

    def steps(self) -> Steps:
        # In one order, so that two processes do not wait for each other.
        for key_id, at in sorted(self.uses.items()):
            sql = "UPDATE api_keys SET last_used = ? WHERE key_id = ? AND (last_used IS NULL OR last_used <= ?)"
            yield Statement(sql, (at, key_id, at - self.every))
        return True
