"""Ontologies, alignments and contexts in the registry (IoA 4, 13), and profiles that agents agreed on (IoA 9).

Operators confirm alignments (IoA 7.4), and calls understood through a mapping are counted (IoA 7.2).
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Generator, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, ClassVar, Final, Literal

import msgspec

from bespeak.extensions.semantics.terms import OntologyRef, parse_version, succession_fault
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, ReadCase
from bespeak.state.store.commands.endpoints import advance
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record
from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Step, Steps, read_all

OPERATOR: Final = "operator:"  # begins the actor of what the operator has registered
REGISTRY_TOPIC: Final = "ontologies"  # topic to watch for changes of the registry

ArtifactKind = Literal["ontology", "alignment", "context"]

MOST_VERSIONS: Final = 1_000  # most versions of one artifact
MOST_CONTENT: Final = 64 * 1024 * 1024  # most bytes of the content of an artifact, before compression
MOST_REGISTERED: Final = 2_000  # most artifacts of a registry; agents may fill half of it, the operator all
_COLUMNS: Final = "kind, id, version, digest, refs, source, signer, signature, actor, supersedes, revision, registered"


class ArtifactRow(msgspec.Struct, frozen=True):
    """A registered artifact without its content."""

    kind: ArtifactKind
    id: str
    version: str
    digest: str  # SHA-256 of the content: canonical N-Quads of an ontology, canonical JSON of others
    refs: tuple[OntologyRef, ...]  # exact versions of ontologies that an alignment relates
    source: str  # file or address that it came from
    signer: str  # id of the key whose signature was verified, or an empty string
    signature: str  # token of the signature, so that others can verify it again
    actor: str  # agent that registered it, or `operator:` with a name
    supersedes: str  # version that was the latest before, or an empty string
    revision: int  # number of the change of the registry that brought it
    registered: float

    @property
    def of_agent(self) -> bool:
        return self.actor != "" and not self.actor.startswith(OPERATOR)

    def document(self) -> dict[str, Any]:
        """Return it for JSON, with its time in RFC 3339 form."""
        return {**msgspec.to_builtins(self), "registered": write_instant(self.registered)}


class Quota(msgspec.Struct, frozen=True):
    """What one agent may register, all versions together."""

    artifacts: int
    size: int  # bytes of content, before compression


class Artifact(msgspec.Struct, frozen=True):
    row: ArtifactRow
    content: bytes


class RegisterArtifact(Command, frozen=True):
    """Register one version of an artifact, completely or not at all. Registered versions never change."""

    guards: ClassVar[bool] = True
    kind: ArtifactKind
    id: str
    version: str
    digest: str
    content: bytes  # compressed by `compress`
    refs: tuple[OntologyRef, ...] = ()
    source: str = ""
    signer: str = ""
    signature: str = ""
    actor: str = ""
    ranks: Mapping[str, int] = {}  # rank of signers by key id, or 0; a lower one does not supersede a higher one
    size: int = 0  # bytes of the content before compression
    quota: Quota | None = None  # bound of the actor; None for the operator

    def steps(self) -> Steps:
        """Return the ArtifactRow, also of an earlier registration of the same content, or a Conflict.

        `version-taken` with the digest, `version-order` with the fault, `of-another` for an agent that has neither
        registered the latest version nor signed this one, `signature-missing` or `signer-rank` with the
        signer of the latest version, `reference-unknown` with the reference, `too-many-versions`, `registry-full`,
        `quota` with what is used and allowed, or `changed` if another registration came between: try again.
        """
        counted = yield Statement("SELECT revision FROM revisions WHERE topic = ? {lock}", (REGISTRY_TOPIC,))
        rows = yield Statement(
            f"SELECT {_COLUMNS} FROM ontologies WHERE kind = ? AND id = ? LIMIT ?", (self.kind, self.id, MOST_VERSIONS)
        )
        known = [_row(*row) for row in rows]
        same = next((row for row in known if row.version == self.version), None)
        if same is not None:
            return same if same.digest == self.digest else Conflict("version-taken", {"digest": same.digest})
        fault = yield from self._fault(known)
        if fault is not None:
            return fault
        changed = yield from advance(REGISTRY_TOPIC, counted[0][0] if counted else 0)
        if changed is None:
            return Conflict("changed")
        latest = latest_of(known)
        inserted = yield Statement(
            f"INSERT INTO ontologies ({_COLUMNS}, content, size) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {{now}}, ?, ?) RETURNING {_COLUMNS}",
            (
                *(self.kind, self.id, self.version, self.digest, msgspec.json.encode(self.refs).decode()),
                *(self.source, self.signer, self.signature, self.actor, latest.version if latest else ""),
                *(changed, self.content, self.size or len(self.content)),
            ),
        )
        yield Notify(REGISTRY_TOPIC)
        return _row(*inserted[0])

    def _fault(self, known: Sequence[ArtifactRow]) -> Generator[Step, Any, Conflict | None]:
        """Check the version, the signature and the references before anything is written."""
        latest = latest_of(known)
        if latest is not None:
            if len(known) >= MOST_VERSIONS:
                return Conflict("too-many-versions", {"most": MOST_VERSIONS})
            if (order := succession_fault(self.version, latest.version)) is not None:
                return Conflict("version-order", {"fault": order, "latest": latest.version})
            if latest.signer and not self.signer:
                return Conflict("signature-missing", {"signer": latest.signer})
            if self.quota is not None and not self.signer and latest.actor != self.actor:
                return Conflict("of-another")
            if self.ranks.get(self.signer, 0) < self.ranks.get(latest.signer, 0):
                return Conflict("signer-rank", {"signer": latest.signer})
        if (full := (yield from self._exceeds())) is not None:
            return full
        for ref in self.refs:
            rows = yield Statement(
                "SELECT 1 FROM ontologies WHERE kind = ? AND id = ? AND version = ?", ("ontology", ref.id, ref.version)
            )
            if not rows:
                return Conflict("reference-unknown", {"id": ref.id, "version": ref.version})
        return None

    def _exceeds(self) -> Generator[Step, Any, Conflict | None]:
        """Check the bounds of the registry and of the actor, over all versions of everything it has registered."""
        rows = yield Statement("SELECT count(*) FROM ontologies")
        most = MOST_REGISTERED if self.quota is None else MOST_REGISTERED // 2
        if rows[0][0] >= most:
            return Conflict("registry-full", {"most": most})
        if self.quota is None:
            return None
        # An index has both, so that no content is read.
        rows = yield Statement("SELECT count(*), coalesce(sum(size), 0) FROM ontologies WHERE actor = ?", (self.actor,))
        own, size = int(rows[0][0]), int(rows[0][1])
        if own >= self.quota.artifacts:
            return Conflict("quota", {"most": self.quota.artifacts, "used": own, "unit": "artifacts"})
        if size + (self.size or len(self.content)) > self.quota.size:
            return Conflict("quota", {"most": self.quota.size, "used": size, "unit": "bytes"})
        return None


class ReadArtifact(Command, frozen=True):
    """Read an artifact with its content: one version, or the latest."""

    kind: ArtifactKind
    id: str
    version: str | None = None

    def steps(self) -> Steps:
        """Return an Artifact or None."""
        named = "FROM ontologies WHERE kind = ? AND id = ?"
        rows: list[ArtifactRow] = yield from read_all(_row, f"SELECT {_COLUMNS} {named}", self.kind, self.id)
        row = latest_of([one for one in rows if self.version in (None, one.version)])
        if row is None:
            return None
        found = yield Statement(f"SELECT content {named} AND version = ?", (self.kind, self.id, row.version))
        return Artifact(row, decompress(found[0][0])) if found else None


class ListArtifacts(Command, frozen=True):
    """List artifacts without their content, in the order of registration."""

    kind: ArtifactKind | None = None
    since: int = 0  # revision after which they were registered
    limit: int = 1_000

    def steps(self) -> Result[list[ArtifactRow]]:
        sql = f"SELECT {_COLUMNS} FROM ontologies WHERE revision > ? AND (kind = ? OR ? = '') ORDER BY revision LIMIT ?"
        return read_all(_row, sql, self.since, self.kind or "", self.kind or "", self.limit)


def latest_of(rows: Sequence[ArtifactRow]) -> ArtifactRow | None:
    """Return the artifact with the highest version; every registered version of one id compares with the others."""

    def order(first: ArtifactRow, second: ArtifactRow) -> int:
        one, other = parse_version(first.version), parse_version(second.version)
        if one is None or other is None or one == other:
            return first.revision - second.revision
        return 1 if one > other else -1

    return max(rows, key=cmp_to_key(order), default=None)


compress: Final = zlib.compress


def decompress(stored: bytes) -> bytes:
    """Return the content of an artifact; what is beyond the limit is cut, and its digest no longer matches."""
    return zlib.decompressobj().decompress(bytes(stored), MOST_CONTENT)


def _row(kind: ArtifactKind, id_: str, version: str, digest: str, refs: str, *rest: Any) -> ArtifactRow:
    return ArtifactRow(kind, id_, version, digest, msgspec.json.decode(refs, type=tuple[OntologyRef, ...]), *rest)


ALIGNMENT_CASE: Final = "alignment"  # Kind of the cases. Agents cannot open or decide one.
MOST_CONFIRMED: Final = 10_000  # most confirmations that are read at once, the latest first


class _Decision(Command, frozen=True):
    """Decision of an operator about one version of a registered alignment."""

    guards: ClassVar[bool] = True
    id: str
    version: str | None  # None for the latest
    decided_by: str
    attestation_id: str
    reason: str | None = None

    def steps(self) -> Steps:
        """Return the Case after the decision; or a Conflict: not-found, not-confirmed."""
        found = yield from ReadArtifact("alignment", self.id, self.version).steps()
        if found is None:
            return Conflict("not-found")
        rows = yield Statement(
            "SELECT case_id, decided_by, decided_at, attestation_id FROM cases "
            "WHERE kind = ? AND state = 'accepted' AND digest = ? ORDER BY decided_at DESC LIMIT 1 {lock}",
            (ALIGNMENT_CASE, found.row.digest),
        )
        return (yield from self._decide(found.row, rows[0] if rows else ()))

    def _decide(self, row: ArtifactRow, confirmation: Sequence[Any]) -> Steps:
        """Carry the decision out. The case of the confirmation in force has id, operator, time and attestation."""
        raise NotImplementedError


class ConfirmAlignment(_Decision, frozen=True):
    """Confirm an alignment, unless it is already. The confirmation is for its digest, so no other content has it."""

    case_id: str = ""

    def _decide(self, row: ArtifactRow, confirmation: Sequence[Any]) -> Steps:
        if not confirmation:
            subject = {"alignment_id": row.id, "version": row.version, "sha256": row.digest, "signer": row.signer}
            yield Statement(
                "INSERT INTO cases (case_id, kind, state, agent_id, recipient, digest, subject, created, decided_by, "
                "decided_at, reason, attestation_id) VALUES (?, ?, ?, '', ?, ?, ?, {now}, ?, {now}, ?, ?)",
                (
                    *(self.case_id, ALIGNMENT_CASE, ACCEPTED, self.decided_by, row.digest),
                    *(msgspec.json.encode(subject).decode(), self.decided_by, self.reason, self.attestation_id),
                ),
            )
            yield Notify(REGISTRY_TOPIC)
        return (yield from ReadCase(confirmation[0] if confirmation else self.case_id).steps())


class RevokeConfirmation(_Decision, frozen=True):
    """Revoke the confirmation of an alignment; the case keeps who had confirmed it, and when."""

    def _decide(self, row: ArtifactRow, confirmation: Sequence[Any]) -> Steps:
        if not confirmation:
            return Conflict("not-confirmed")
        case_id, *before = confirmation
        confirmed: dict[str, Any] = dict(zip(("confirmed_by", "confirmed_at", "attestation_id"), before, strict=True))
        yield Statement(
            "UPDATE cases SET state = ?, decided_by = ?, decided_at = {now}, reason = ?, attestation_id = ?, "
            "attestation = ? WHERE kind = ? AND digest = ? AND state = 'accepted'",
            (
                *(REJECTED, self.decided_by, self.reason, self.attestation_id),
                *(msgspec.json.encode(confirmed).decode(), ALIGNMENT_CASE, row.digest),
            ),
        )
        yield Notify(REGISTRY_TOPIC)
        return (yield from ReadCase(case_id).steps())


class ListConfirmed(Command, frozen=True):
    def steps(self) -> Steps:
        """Return who has confirmed what, by the digest of an alignment."""
        rows = yield Statement(
            "SELECT digest, decided_by FROM cases WHERE kind = ? AND state = 'accepted' "
            "ORDER BY decided_at DESC LIMIT ?",
            (ALIGNMENT_CASE, MOST_CONFIRMED),
        )
        return dict(reversed(rows))


MOST_MAPPINGS: Final = 100_000  # mappings that are read at once, those with the most calls first


class MappedCalls(msgspec.Struct, frozen=True):
    """Calls through one mapping, in the direction in which it was used."""

    source: str
    target: str
    succeeded: int
    failed: int


class CountMappedCalls(Command, frozen=True):
    """Add calls to the history of mappings, each named once."""

    calls: tuple[MappedCalls, ...]

    def steps(self) -> Steps:
        # In one order everywhere, so that two processes never wait for each other's rows.
        for one in sorted(self.calls, key=lambda one: (one.source, one.target)):
            yield Statement(
                "INSERT INTO mapped_calls (source, target, succeeded, failed) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (source, target) DO UPDATE SET succeeded = mapped_calls.succeeded + excluded.succeeded, "
                "failed = mapped_calls.failed + excluded.failed",
                (one.source, one.target, one.succeeded, one.failed),
            )


class ListMappedCalls(Command, frozen=True):
    limit: int = MOST_MAPPINGS

    def steps(self) -> Result[list[MappedCalls]]:
        order = "ORDER BY succeeded + failed DESC, source, target"
        return read_all(
            MappedCalls, f"SELECT source, target, succeeded, failed FROM mapped_calls {order} LIMIT ?", self.limit
        )


PROFILE_RECORD: Final = "semantic_profile"
PROFILE_KEPT: Final = 30 * 86400.0  # seconds for which a profile is kept after its last use
_ACTIVE: Final = "active"


class RecordedProfile(msgspec.Struct, frozen=True):
    digest: str  # SHA-256 of the profile
    profile: Any  # profile as plain data
    owner: str = ""  # Agent that it belongs to
    version: int = 1  # number of profiles that the task has had


class UseProfile(Command, frozen=True):
    """Find the profile of a task, or one that was agreed on, and keep it longer."""

    record_id: str

    def steps(self) -> Steps:
        """Return a RecordedProfile; its digest is empty if there is none."""
        found = yield from FindRecord((PROFILE_RECORD,), record_id=self.record_id).steps()
        if found is not None:
            yield _prolong(self.record_id)
        return _read(found)


class RecordProfile(Command, frozen=True):
    """Record the profile of a task unless it has one, which then stays (IoA 9)."""

    record_id: str
    owner: str
    digest: str
    profile: Any

    def steps(self) -> Steps:
        """Return the RecordedProfile of the task, perhaps with another digest."""
        find = FindRecord((PROFILE_RECORD,), record_id=self.record_id)
        found = yield from find.steps()
        if found is None:
            made = yield from self._put()
            # Of two calls that begin a task at once, the second finds the record of the first.
            return _read(made if isinstance(made, Record) else (yield from find.steps()))
        yield _prolong(self.record_id)
        return _read(found)

    def _put(self) -> Steps:
        """Add a record, also in the place of one that has expired and is not removed yet."""
        yield Statement("DELETE FROM records WHERE record_id = ? AND expires <= {now}", (self.record_id,))
        put = PutRecord(self.record_id, PROFILE_RECORD, self.owner, _ACTIVE, self._data(), lifetime=PROFILE_KEPT)
        return (yield from put.steps())

    def _data(self) -> str:
        return msgspec.json.encode({"digest": self.digest, "profile": self.profile}).decode()


class ReplaceProfile(RecordProfile, frozen=True):
    """Record the new profile of a task after a renegotiation, or the first one (IoA 9)."""

    def steps(self) -> Steps:
        """Return the RecordedProfile."""
        made = yield from self._put()
        if not isinstance(made, Record):
            kinds, states, data = (PROFILE_RECORD,), (_ACTIVE,), self._data()
            change = ChangeRecord(self.record_id, kinds, states, _ACTIVE, data=data, lifetime=PROFILE_KEPT)
            made = yield from change.steps()
        return _read(made)


def record_id(kind: Literal["task", "profile"], owner: str, name: str) -> str:
    """Return the id of the record of a task by its id, or of a profile, which its agent may refer to, by its digest."""
    text = "\x00".join((kind, owner, name)).encode("utf-8", "surrogatepass")
    return f"semantic-{hashlib.sha256(text).hexdigest()[:40]}"


def _prolong(record_id: str) -> Statement:
    return Statement(
        "UPDATE records SET expires = {now} + ? WHERE record_id = ? AND expires < {now} + ?",
        (PROFILE_KEPT, record_id, PROFILE_KEPT / 2),
    )


def _read(record: Record | None) -> RecordedProfile:
    if record is None:
        return RecordedProfile("", None)
    content = record.content()
    return RecordedProfile(content["digest"], content["profile"], record.owner, record.version)
