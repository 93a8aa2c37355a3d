"""Sessions: the agent each is bound to, and the checkpoint of a suspended one."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.store import Command, Conflict, Notify, Statement, Steps

TOPIC: Final = "sessions"  # topic to watch for suspended and resumed sessions

ACTIVE: Final = "active"
SUSPENDED: Final = "suspended"
KEPT_AFTER: Final = 86400.0  # seconds for which a session that was not resumed in time is remembered as expired

# A session that has been idle for too long starts anew, for the agent it belonged to; nothing of the old one is left.
_BIND: Final = """
INSERT INTO sessions (session_id, agent_id, tls_identity, created, expires, state)
VALUES (?, ?, ?, {now}, {now} + ?, 'active')
ON CONFLICT (session_id) DO UPDATE SET
    tls_identity = excluded.tls_identity,
    created = CASE WHEN sessions.expires <= {now} THEN excluded.created ELSE sessions.created END,
    suspension_id = CASE WHEN sessions.expires <= {now} THEN NULL ELSE sessions.suspension_id END,
    nonce_hash = CASE WHEN sessions.expires <= {now} THEN NULL ELSE sessions.nonce_hash END,
    resume_by = CASE WHEN sessions.expires <= {now} THEN NULL ELSE sessions.resume_by END,
    reason = CASE WHEN sessions.expires <= {now} THEN NULL ELSE sessions.reason END,
    checkpoint = CASE WHEN sessions.expires <= {now} THEN NULL ELSE sessions.checkpoint END,
    expires = excluded.expires
WHERE sessions.agent_id = excluded.agent_id AND sessions.state = 'active'
  AND (sessions.tls_identity = excluded.tls_identity OR sessions.expires <= {now})
RETURNING 1
"""


class Session(msgspec.Struct, frozen=True):
    session_id: str
    agent_id: str  # Agent of the session; empty for anonymous callers
    tls_identity: str  # SHA-256 of the client certificate; empty without one
    created: float
    expires: float
    state: str
    suspension_id: str | None
    resume_by: float | None
    reason: str | None
    checkpoint: str | None


_COLUMNS: Final = ", ".join(Session.__struct_fields__)


class BindSession(Command, frozen=True):
    """Bind a session to its agent at first use, and extend it at every later one."""

    guards: ClassVar[bool] = True
    session_id: str
    agent_id: str
    tls_identity: str
    idle: float  # idle timeout in seconds
    resuming: bool = False  # True if the request will resume the session, possibly with a new certificate

    def steps(self) -> Steps:
        """Return the state of the session, or a Conflict: of-another, suspended, expired."""
        rows = yield Statement(_BIND, (self.session_id, self.agent_id, self.tls_identity, self.idle))
        if rows:
            return ACTIVE
        rows = yield Statement(
            "SELECT agent_id, state, resume_by <= {now}, resume_by FROM sessions WHERE session_id = ?",
            (self.session_id,),
        )
        if not rows:  # it was another's, and has been cleared away this moment
            return Conflict("of-another")
        agent_id, state, over, resume_by = rows[0]
        if agent_id != self.agent_id or state != SUSPENDED:
            return Conflict("of-another")
        if over:
            return Conflict("expired")
        return SUSPENDED if self.resuming else Conflict("suspended", {"resume_by": resume_by})


class SeekSession(Command, frozen=True):
    """Check that an anonymous caller names no session of another caller; nothing is bound."""

    guards: ClassVar[bool] = True
    session_id: str

    def steps(self) -> Steps:
        """Return ACTIVE, or a Conflict: of-another."""
        rows = yield Statement(
            "SELECT 1 FROM sessions WHERE session_id = ? AND agent_id <> '' AND expires > {now}", (self.session_id,)
        )
        return Conflict("of-another") if rows else ACTIVE


class SuspendSession(Command, frozen=True):
    """Suspend a session until its nonce is presented."""

    guards: ClassVar[bool] = True
    session_id: str
    agent_id: str
    tls_identity: str
    suspension_id: str
    nonce_hash: str  # SHA-256 of the nonce in hexadecimal digits: only the agent has the nonce itself
    resume_by: float  # deadline in seconds since 1970
    reason: str | None = None
    checkpoint: str | None = None  # JSON checkpoint

    def steps(self) -> Steps:
        """Return True, or a Conflict: not-found, suspended, expired."""
        rows = yield Statement(
            "UPDATE sessions SET state = 'suspended', suspension_id = ?, nonce_hash = ?, resume_by = ?, reason = ?, "
            "checkpoint = ?, expires = ? "
            "WHERE session_id = ? AND agent_id = ? AND tls_identity = ? AND state = 'active' AND expires > {now} "
            "RETURNING 1",
            (
                *(self.suspension_id, self.nonce_hash, self.resume_by, self.reason, self.checkpoint),
                self.resume_by + KEPT_AFTER,
                *(self.session_id, self.agent_id, self.tls_identity),
            ),
        )
        if rows:
            yield Notify(TOPIC)
            return True
        rows = yield Statement(
            "SELECT resume_by <= {now} FROM sessions "
            "WHERE session_id = ? AND agent_id = ? AND state = 'suspended' AND expires > {now}",
            (self.session_id, self.agent_id),
        )
        if not rows:
            return Conflict("not-found")
        return Conflict("expired" if rows[0][0] else "suspended")


class ResumeSession(Command, frozen=True):
    """Resume a suspended session. Its nonce can be used once."""

    guards: ClassVar[bool] = True
    session_id: str
    agent_id: str
    tls_identity: str  # certificate hash from now on: a long pause may outlive a certificate
    nonce_hash: str
    idle: float
    checkpoint: str | None = None  # JSON that replaces the stored checkpoint

    def steps(self) -> Steps:
        """Return the Session, or a Conflict: not-found, not-suspended, nonce-wrong, nonce-used, expired."""
        rows = yield Statement(
            "SELECT agent_id, state, nonce_hash, resume_by <= {now} FROM sessions "
            "WHERE session_id = ? AND expires > {now} {lock}",
            (self.session_id,),
        )
        if not rows or rows[0][0] != self.agent_id:
            return Conflict("not-found")
        _, state, nonce_hash, over = rows[0]
        if state != SUSPENDED:
            return Conflict("nonce-used" if nonce_hash == self.nonce_hash else "not-suspended")
        if nonce_hash != self.nonce_hash:
            return Conflict("nonce-wrong")
        if over:
            return Conflict("expired")
        rows = yield Statement(
            "UPDATE sessions SET state = 'active', tls_identity = ?, expires = {now} + ?, "
            "checkpoint = coalesce(?, checkpoint) WHERE session_id = ? RETURNING " + _COLUMNS,
            (self.tls_identity, self.idle, self.checkpoint, self.session_id),
        )
        yield Notify(TOPIC)
        return Session(*rows[0])
