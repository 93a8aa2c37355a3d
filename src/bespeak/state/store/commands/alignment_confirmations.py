"""Confirmations of alignments: decisions of an operator about exact contents, each recorded as a case (IoA 7.4, 13)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Notify, Statement, Steps
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, Case, ReadCase
from bespeak.state.store.commands.ontologies import TOPIC, ReadArtifact

KIND: Final = "alignment"
"""Kind of the cases. Agents cannot open or decide one."""
MOST_CONFIRMED: Final = 10_000
"""Most confirmations that are read at once, the latest first."""

_LIVE: Final = "FROM cases WHERE kind = ? AND state = 'accepted' AND digest = ? ORDER BY decided_at DESC LIMIT 1"


class ConfirmAlignment(Command, frozen=True):
    """Confirm one version of a registered alignment. The confirmation is for its digest, so no other content has it."""

    guards: ClassVar[bool] = True
    id: str
    version: str | None
    """Version to confirm; None for the latest."""
    case_id: str
    decided_by: str
    attestation_id: str
    reason: str | None = None

    def steps(self) -> Steps:
        """Return the Case, also of an earlier confirmation of the same content; or a Conflict: not-found."""
        found = yield from ReadArtifact("alignment", self.id, self.version).steps()
        if found is None:
            return Conflict("not-found")
        row = found.row
        known = yield Statement(f"SELECT case_id {_LIVE} {{lock}}", (KIND, row.digest))
        if not known:
            subject = {"alignment_id": row.id, "version": row.version, "sha256": row.digest, "signer": row.signer}
            yield Statement(
                "INSERT INTO cases (case_id, kind, state, agent_id, recipient, digest, subject, created, decided_by, "
                "decided_at, reason, attestation_id) VALUES (?, ?, ?, '', ?, ?, ?, {now}, ?, {now}, ?, ?)",
                (
                    *(self.case_id, KIND, ACCEPTED, self.decided_by, row.digest),
                    *(msgspec.json.encode(subject).decode(), self.decided_by, self.reason, self.attestation_id),
                ),
            )
            yield Notify(TOPIC)
        return (yield from ReadCase(known[0][0] if known else self.case_id).steps())


class RevokeConfirmation(Command, frozen=True):
    """Revoke the confirmation of one version of an alignment; the case keeps who had confirmed it, and when."""

    guards: ClassVar[bool] = True
    id: str
    version: str | None
    """Version to revoke; None for the latest."""
    decided_by: str
    attestation_id: str
    reason: str | None = None

    def steps(self) -> Steps:
        """Return the Case after the change; or a Conflict: not-found, not-confirmed."""
        found = yield from ReadArtifact("alignment", self.id, self.version).steps()
        if found is None:
            return Conflict("not-found")
        rows = yield Statement(
            f"SELECT case_id, decided_by, decided_at, attestation_id {_LIVE} {{lock}}", (KIND, found.row.digest)
        )
        if not rows:
            return Conflict("not-confirmed")
        case_id, *before = rows[0]
        confirmed: dict[str, Any] = dict(zip(("confirmed_by", "confirmed_at", "attestation_id"), before, strict=True))
        yield Statement(
            "UPDATE cases SET state = ?, decided_by = ?, decided_at = {now}, reason = ?, attestation_id = ?, "
            "attestation = ? WHERE kind = ? AND digest = ? AND state = 'accepted'",
            (
                *(REJECTED, self.decided_by, self.reason, self.attestation_id),
                *(msgspec.json.encode(confirmed).decode(), KIND, found.row.digest),
            ),
        )
        yield Notify(TOPIC)
        case: Case = yield from ReadCase(case_id).steps()
        return case


class ListConfirmed(Command, frozen=True):
    """List the confirmations in force."""

    def steps(self) -> Steps:
        """Return who has confirmed what, by the digest of an alignment."""
        rows = yield Statement(
            "SELECT digest, decided_by FROM cases WHERE kind = ? AND state = 'accepted' "
            "ORDER BY decided_at DESC LIMIT ?",
            (KIND, MOST_CONFIRMED),
        )
        return dict(reversed(rows))
