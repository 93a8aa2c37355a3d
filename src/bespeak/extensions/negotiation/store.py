"""Proposals of endpoints: rejected, waiting for an operator, or approved. An approved proposal is a synthesis."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from bespeak.state.store.commands.endpoints import advance
from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Steps, read_all, read_one

TOPIC: Final = "proposals"  # topic to watch for approved and ended syntheses

PENDING: Final = "pending"
APPROVED: Final = "approved"
REJECTED: Final = "rejected"
RELEASED: Final = "released"
REVOKED: Final = "revoked"
EXPIRED: Final = "expired"
STATES: Final = (PENDING, APPROVED, REJECTED, RELEASED, REVOKED, EXPIRED)

MOST_LIVE: Final = 10_000  # maximum number of open proposals: every process keeps the syntheses in memory
MEAN_SIZE: Final = 16 * 1024  # maximum mean of the characters of an agent's open proposals, for as many as it may have
MOST_REJECTED: Final = 100  # maximum number of rejected proposals of one agent that are kept
KEPT: Final = 86400.0  # seconds for which a rejected proposal counts as a turn of its negotiation
REVOKED_FOR: Final = 30 * 86400.0  # seconds for which only an operator can approve again what was revoked
_CLOCK: Final = 0.001  # seconds by which two times of one statement may differ

# A synthesis lives as long as the session that proposed it; one that was granted for a time, or belongs to no named
# session, until that time.
_IN_SESSION: Final = (
    "EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_id = proposals.session_id "
    "AND s.agent_id = proposals.agent_id AND s.created = proposals.session_created AND s.expires > {now})"
)
_ALIVE: Final = f"(CASE WHEN session_id <> '' AND persistent = 0 THEN {_IN_SESSION} ELSE expires > {{now}} END)"
_STATE: Final = (
    f"CASE WHEN state = 'approved' AND NOT {_ALIVE} THEN 'expired' "
    "WHEN state = 'pending' AND expires <= {now} THEN 'expired' ELSE state END"
)


class ProposalRow(msgspec.Struct, frozen=True):
    proposal_id: str
    negotiation_id: str
    agent_id: str  # Agent that proposed it; `@` and a network for an anonymous caller
    session_id: str  # empty for a persistent one, and for the calls of an agent that name no session
    method: str
    path: str
    digest: str  # SHA-256 of the contract that was proposed
    document: str  # JSON: endpoint and recipe of a synthesis, or the refusal
    persistent: bool
    published: bool  # True if any agent may call it
    granted: float  # seconds for which it is granted, from the approval or, in a session, from the last use
    created: float
    expires: float
    decided_by: str | None
    decided_at: float | None
    reason: str | None
    revision: int
    state: str

    @property
    def synthesis_id(self) -> str:
        """Id of the synthesis; it matches that of the proposal (AGTP-API 10.2)."""
        return f"syn-{self.proposal_id.removeprefix('prop-')}"


_NAMES: Final = ", ".join(ProposalRow.__struct_fields__[:-1])
_COLUMNS: Final = f"{_NAMES}, {_STATE}"


def proposal_id_of(synthesis_id: str) -> str:
    """Return the id of the proposal behind a synthesis; that of a proposal is returned as it is."""
    return f"prop-{synthesis_id.removeprefix('syn-').removeprefix('prop-')}"


def _proposal(*row: Any) -> ProposalRow:
    made = ProposalRow(*row)  # SQLite has no booleans
    return msgspec.structs.replace(made, persistent=bool(made.persistent), published=bool(made.published))


class Filed(msgspec.Struct, frozen=True):
    """The proposal of a request, and the rejections of its negotiation so far."""

    proposal: ProposalRow
    new: bool
    rejections: int = 0


class FileProposal(Command, frozen=True):
    """Store an evaluation, once per session and contract. What is approved becomes current for its method and path."""

    guards: ClassVar[bool] = True
    proposal_id: str
    negotiation_id: str
    agent_id: str
    session_id: str
    method: str
    path: str
    digest: str
    state: str  # approved, pending or rejected
    document: str
    granted: float  # seconds for which it is granted, from the approval
    lasts: float  # seconds until it ends in this state
    persistent: bool = False
    counter_digest: str | None = None  # digest of the counter-proposal that the refusal makes
    most_live: int = 100

    def steps(self) -> Steps:
        """Return what was Filed, or a Conflict: too-many, too-large. The session must have been bound."""
        if self.state != REJECTED:
            key = (self.agent_id, self.session_id, self.digest)
            # The index allows one open row, and nobody notes that a time has passed.
            yield Statement(
                "UPDATE proposals SET state = 'expired' WHERE agent_id = ? AND session_id = ? AND digest = ? "
                f"AND state IN ('approved', 'pending') AND {_STATE} = 'expired'",
                key,
            )
            rows = yield Statement(f"{_OPEN} {{lock}}", key)
            known = _proposal(*rows[0]) if rows else None
            if known is not None and known.document == self.document:
                # It becomes the current one of its method and path again; a pending proposal stays as it is.
                current = (yield from _move(known.proposal_id, APPROVED)) if known.state == APPROVED else known
                return Filed(current, new=False)
            if known is not None:  # the same contract is carried out in another way now
                yield from _move(known.proposal_id, RELEASED)
            conflict = yield from self._find_room()
            if conflict is not None:
                return conflict
        revision = (yield from advance(TOPIC)) if self.state == APPROVED else 0
        inserted = yield Statement(
            "INSERT INTO proposals (proposal_id, negotiation_id, agent_id, session_id, session_created, method, path, "
            "digest, counter_digest, state, document, persistent, published, granted, created, expires, revision) "
            "VALUES (?, ?, ?, ?, (SELECT created FROM sessions WHERE session_id = ? AND agent_id = ?), "
            "?, ?, ?, ?, ?, ?, ?, 0, ?, {now}, {now} + ?, ?) "
            "ON CONFLICT (agent_id, session_id, digest) WHERE state IN ('approved', 'pending') DO NOTHING "
            f"RETURNING {_COLUMNS}",
            (
                *(self.proposal_id, self.negotiation_id, self.agent_id, self.session_id),
                *(self.session_id, self.agent_id, self.method, self.path, self.digest, self.counter_digest),
                *(self.state, self.document, int(self.persistent), self.granted, self.lasts, revision),
            ),
        )
        if not inserted:  # another process stored the same at the same moment
            rows = yield Statement(_OPEN, (self.agent_id, self.session_id, self.digest))
            return Filed(_proposal(*rows[0]), new=False)
        if self.state == APPROVED:
            yield Notify(TOPIC)
        rejections = 0
        if self.state == REJECTED:
            rows = yield Statement(f"SELECT count(*) FROM proposals WHERE {_TURN}", _turn(self, self.negotiation_id))
            rejections = rows[0][0]
            yield Statement(
                "DELETE FROM proposals WHERE proposal_id IN (SELECT proposal_id FROM proposals WHERE agent_id = ? "
                "AND state = 'rejected' AND proposal_id <> ? ORDER BY created DESC LIMIT 10 OFFSET ?)",
                (self.agent_id, self.proposal_id, MOST_REJECTED - 1),
            )
        return Filed(_proposal(*inserted[0]), new=True, rejections=rejections)

    def _find_room(self) -> Result[Conflict | None]:
        rows = yield Statement(
            "SELECT count(*), coalesce(sum(length(document)), 0) FROM proposals WHERE agent_id = ? "
            f"AND state IN ('approved', 'pending') AND {_STATE} <> 'expired'",
            (self.agent_id,),
        )
        count, size = rows[0]
        if count >= self.most_live:
            return Conflict("too-many", {"most": self.most_live})
        if size + len(self.document) > self.most_live * MEAN_SIZE:
            return Conflict("too-large", {"most": self.most_live * MEAN_SIZE})
        rows = yield Statement(
            f"SELECT count(*) FROM proposals WHERE state IN ('approved', 'pending') AND {_STATE} <> 'expired'"
        )
        return Conflict("too-many", {"most": MOST_LIVE}) if rows[0][0] >= MOST_LIVE else None


_OPEN: Final = (
    f"SELECT {_COLUMNS} FROM proposals WHERE agent_id = ? AND session_id = ? AND digest = ? "
    "AND state IN ('approved', 'pending')"
)
# A negotiation whose id is left out is found by what is negotiated.
_TURN: Final = (
    "agent_id = ? AND state = 'rejected' AND expires > {now} "
    "AND (negotiation_id = ? OR (session_id = ? AND method = ? AND path = ?))"
)


def _turn(command: FileProposal | FindNegotiation, negotiation_id: str) -> tuple[str, ...]:
    return command.agent_id, negotiation_id, command.session_id, command.method, command.path


class NegotiationHistory(msgspec.Struct, frozen=True):
    """What happened so far between an agent and the server about one endpoint."""

    negotiation_id: str | None = None  # id of the newest rejected proposal; None if there is none
    rejections: int = 0
    offered: str | None = None  # document of the counter-proposal that this proposal accepts; None if it accepts none
    revoked: bool = False  # True if an operator has revoked a synthesis of the agent with this method and path


class FindNegotiation(Command, frozen=True):
    """Find the state of a negotiation before a proposal is evaluated."""

    agent_id: str
    session_id: str
    method: str
    path: str
    contract: str  # digest of the definition alone, by which a counter-proposal is recognised
    negotiation_id: str = ""  # the id that the caller sent; empty for none

    def steps(self) -> Result[NegotiationHistory]:
        rows = yield Statement(
            f"SELECT negotiation_id FROM proposals WHERE {_TURN} ORDER BY created DESC LIMIT 3",
            _turn(self, self.negotiation_id),
        )
        offer = yield Statement(
            "SELECT document FROM proposals WHERE agent_id = ? AND state = 'rejected' AND counter_digest = ? "
            "AND expires > {now} ORDER BY created DESC LIMIT 1",
            (self.agent_id, self.contract),
        )
        ended = yield Statement(
            "SELECT 1 FROM proposals WHERE agent_id = ? AND state = 'revoked' AND method = ? AND path = ? "
            "AND expires > {now} LIMIT 1",
            (self.agent_id, self.method, self.path),
        )
        return NegotiationHistory(rows[0][0] if rows else None, len(rows), offer[0][0] if offer else None, bool(ended))


class DecideProposal(Command, frozen=True):
    guards: ClassVar[bool] = True
    proposal_id: str
    state: str
    decided_by: str
    reason: str | None = None

    def steps(self) -> Steps:
        """Return the ProposalRow, or a Conflict: not-found, decided, expired, ended."""
        proposal = yield from _lock(self.proposal_id)
        if proposal is None:
            return Conflict("not-found")
        if proposal.state != PENDING:
            reason = "expired" if proposal.state == EXPIRED else "decided"
            return Conflict(reason, {"state": proposal.state, "decided_by": proposal.decided_by})
        if self.state == APPROVED and proposal.session_id:
            sql = f"SELECT 1 FROM proposals WHERE proposal_id = ? AND {_IN_SESSION}"
            rows = yield Statement(sql, (self.proposal_id,))
            if not rows:
                return Conflict("ended", {"session_id": proposal.session_id})
        lasts = proposal.granted if self.state == APPROVED else KEPT
        changes = "state = ?, decided_by = ?, decided_at = {now}, reason = ?, expires = {now} + ?"
        return (yield from _change(self.proposal_id, changes, self.state, self.decided_by, self.reason, lasts))


class PublishProposal(Command, frozen=True):
    """Let every agent call a synthesis, beyond the session that proposed it."""

    guards: ClassVar[bool] = True
    proposal_id: str
    duration: float  # seconds for which it is served from now on
    decided_by: str | None = None  # operator who has read its texts and approves them

    def steps(self) -> Steps:
        """Return the ProposalRow, or a Conflict: not-found, not-approved."""
        conflict = yield from _find_approved(self.proposal_id)
        if conflict is not None:
            return conflict
        changes = "persistent = 1, published = 1, granted = ?, expires = {now} + ?, "
        changes += "decided_by = coalesce(?, decided_by), decided_at = {now}"
        return (yield from _change(self.proposal_id, changes, self.duration, self.duration, self.decided_by))


class ReleaseSynthesis(Command, frozen=True):
    """End a synthesis at the wish of its agent, or withdraw a proposal that is pending or rejected."""

    guards: ClassVar[bool] = True
    proposal_id: str
    agent_id: str

    def steps(self) -> Steps:
        """Return the ProposalRow, or a Conflict: not-found, of-another."""
        proposal = yield from _lock(self.proposal_id)
        if proposal is None or proposal.state not in (APPROVED, PENDING, REJECTED):
            return Conflict("not-found")
        if proposal.agent_id != self.agent_id:
            # The manifest lists a published one; any other must not be revealed.
            is_public = proposal.published and proposal.state == APPROVED
            return Conflict("of-another" if is_public else "not-found")
        if proposal.state != APPROVED:
            yield Statement("DELETE FROM proposals WHERE proposal_id = ?", (self.proposal_id,))
            return msgspec.structs.replace(proposal, state=RELEASED)
        # A call extends it. What was never called needs no history; its row tells other processes until the next sweep.
        yield Statement(
            "UPDATE proposals SET expires = 0 "
            "WHERE proposal_id = ? AND persistent = 0 AND expires <= created + granted + ?",
            (self.proposal_id, _CLOCK),
        )
        return (yield from _move(self.proposal_id, RELEASED))


class RevokeSynthesis(Command, frozen=True):
    """End a synthesis at the wish of an operator, whoever proposed or published it."""

    guards: ClassVar[bool] = True
    proposal_id: str
    decided_by: str
    reason: str | None = None

    def steps(self) -> Steps:
        """Return the ProposalRow, or a Conflict: not-found, not-approved."""
        conflict = yield from _find_approved(self.proposal_id)
        if conflict is not None:
            return conflict
        changes = "state = ?, decided_by = ?, decided_at = {now}, reason = ?, expires = {now} + ?"
        return (yield from _change(self.proposal_id, changes, REVOKED, self.decided_by, self.reason, REVOKED_FOR))


REFUSALS: Final = {
    "not-found": "proposal {0!r} not found; see `bespeak proposals list --state all`",
    "ended": "the session of {0} has ended; the agent must propose again",
    "expired": "{0} has expired; the agent must propose again",
    "decided": "{0} is {state} already, by {by}",
    "not-approved": "{0} is {state}; only an approved proposal can be published or revoked",
}
"""Why a decision was not carried out, by the reason of its Conflict."""


class UseSynthesis(Command, frozen=True):
    """Check that a synthesis still lives; each use extends one that ends after a time without use."""

    proposal_id: str
    idle: float

    def steps(self) -> Steps:
        """Return the seconds for which it is certain to live, or None if it has ended."""
        rows = yield Statement(
            "UPDATE proposals SET expires = CASE WHEN persistent = 0 THEN {now} + ? ELSE expires END "
            f"WHERE proposal_id = ? AND state = 'approved' AND {_ALIVE} "
            "RETURNING persistent, session_id, expires - {now}",
            (self.idle, self.proposal_id),
        )
        if not rows:
            return None
        persistent, session_id, left = rows[0]
        if persistent:
            return left
        if not session_id:
            return self.idle / 4
        rows = yield Statement("SELECT expires - {now} FROM sessions WHERE session_id = ?", (session_id,))
        return rows[0][0] if rows else None


class ReadProposal(Command, frozen=True):
    proposal_id: str

    def steps(self) -> Result[ProposalRow | None]:
        return read_one(_proposal, f"SELECT {_COLUMNS} FROM proposals WHERE proposal_id = ?", self.proposal_id)


class ListProposals(Command, frozen=True):
    state: str | None = None  # state to list; None for all
    limit: int = 100
    after: tuple[float, str] = (0.0, "")  # time and id of the last proposal of the previous page, if oldest first
    agent_id: str | None = None  # whose to list, newest first; None for those of all agents, oldest first

    def steps(self) -> Result[list[ProposalRow]]:
        both = {f"{_STATE} = ?": self.state, "agent_id = ?": self.agent_id}
        chosen: dict[str, Any] = {condition: value for condition, value in both.items() if value is not None}
        order = "created DESC, proposal_id"
        if self.agent_id is None:
            chosen |= {"(created, proposal_id) > (?, ?)": self.after}
            order = "created, proposal_id"
        given = [part for value in chosen.values() for part in (value if isinstance(value, tuple) else (value,))]
        sql = f"SELECT {_COLUMNS} FROM proposals WHERE {' AND '.join(chosen)} ORDER BY {order} LIMIT ?"
        return read_all(_proposal, sql, *given, self.limit)


class ListChanges(Command, frozen=True):
    """List what was approved, published or ended after a revision, in that order."""

    after: int

    def steps(self) -> Result[list[ProposalRow]]:
        # From the beginning, only the living ones.
        living = "" if self.after else f" AND {_STATE} = 'approved'"
        sql = f"SELECT {_COLUMNS} FROM proposals WHERE revision > ?{living} ORDER BY revision LIMIT ?"
        return read_all(_proposal, sql, self.after, 2 * MOST_LIVE)


def _lock(proposal_id: str) -> Result[ProposalRow | None]:
    return read_one(_proposal, f"SELECT {_COLUMNS} FROM proposals WHERE proposal_id = ? {{lock}}", proposal_id)


def _find_approved(proposal_id: str) -> Result[Conflict | None]:
    """Lock a synthesis; return a Conflict if it does not live."""
    proposal = yield from _lock(proposal_id)
    if proposal is None:
        return Conflict("not-found")
    return None if proposal.state == APPROVED else Conflict("not-approved", {"state": proposal.state})


def _move(proposal_id: str, state: str) -> Result[ProposalRow]:
    return _change(proposal_id, "state = ?", state)


def _change(proposal_id: str, changes: str, *values: Any) -> Result[ProposalRow]:
    """Change a proposal, which gets the newest revision, in every process."""
    revision = yield from advance(TOPIC)
    rows = yield Statement(
        f"UPDATE proposals SET {changes}, revision = ? WHERE proposal_id = ? RETURNING {_COLUMNS}",
        (*values, revision, proposal_id),
    )
    yield Notify(TOPIC)
    return _proposal(*rows[0])
