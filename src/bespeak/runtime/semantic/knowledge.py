"""What a server knows of the registry, in memory: read again whenever any process registers something."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from bespeak.checks.alignment.artifact import NO_TRUST, UNSIGNED, Trust
from bespeak.checks.alignment.policy import Policy
from bespeak.checks.alignment.resolution import DEFAULT as DEFAULT_POLICY
from bespeak.contract.ontology.alignment import Alignment
from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.documents.alignment.draft_json import read_json
from bespeak.documents.ontology.registered import read_registered
from bespeak.protocol.fault import Fault
from bespeak.runtime.follower import Follower
from bespeak.runtime.semantic.offloading import run_beside, run_in_thread
from bespeak.runtime.semantic.snapshot import Snapshot
from bespeak.state.identity.artifact_signature import ArtifactStatement, signature_fault, verify_artifact
from bespeak.state.store.commands.alignment_confirmations import ListConfirmed
from bespeak.state.store.commands.ontologies import (
    MOST_REGISTERED,
    TOPIC,
    Artifact,
    ArtifactRow,
    ListArtifacts,
    ReadArtifact,
)
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

MOST_ARTIFACTS: Final = MOST_REGISTERED
"""Most artifacts in memory; the oldest are read first."""

_Content = Ontology | Alignment | msgspec.Raw


class Knowledge:
    """Follows the registry of a store. `snapshot` is replaced by one assignment."""

    def __init__(
        self, namespace: Namespace = DEFAULT, policy: Policy = DEFAULT_POLICY, trust: Trust = NO_TRUST
    ) -> None:
        self._namespace = namespace
        self._policy = policy
        self._trust = trust
        self._confirmed: dict[str, str] = {}
        """Operators that have confirmed alignments, by digest."""
        self._unused: dict[str, str] = {}
        """Why alignments are not used, by id."""
        self._follower = Follower(TOPIC, self._take_in)
        self._contents: dict[tuple[str, str, str], _Content] = {}
        self.snapshot = Snapshot(namespace=namespace)
        """What is known now."""
        self.changed: Callable[[], None] = lambda: None
        """Called after the snapshot has been replaced."""

    async def follow(self, store: Store) -> None:
        """Load the registry, now and whenever it changes. Raises StoreError if that fails now."""
        await self._follower.follow(store)

    async def refresh(self) -> None:
        """Load what other processes have registered."""
        await self._follower.refresh()

    async def close(self) -> None:
        """Cancel pending work."""
        await self._follower.close()

    async def _take_in(self, store: Store) -> None:
        before = revision = self.snapshot.revision
        confirmed: dict[str, str] = await store.read(ListConfirmed())
        rows: list[ArtifactRow] = await store.read(ListArtifacts(since=revision, limit=MOST_ARTIFACTS))
        for row in rows:
            revision = max(revision, row.revision)
            if len(self._contents) >= MOST_ARTIFACTS:
                _logger.warning("the registry has more than %d artifacts; %s is not used", MOST_ARTIFACTS, row.id)
                continue
            artifact: Artifact | None = await store.read(ReadArtifact(row.kind, row.id, row.version))
            content = None if artifact is None else await self._read(artifact)
            if content is not None:
                self._contents[row.kind, row.id, row.version] = content
        if revision != before or confirmed != self._confirmed:
            self._confirmed = confirmed
            self.snapshot = await run_in_thread(self._snapshot, revision)
            self.changed()

    async def _read(self, artifact: Artifact) -> _Content | None:
        """Read an artifact, which takes up to seconds; calls go on with what was known before."""
        # Before the first snapshot, there are no calls that a thread could hold up.
        size = len(artifact.content) if self.snapshot.revision else 0
        found: _Content | Fault
        try:
            found = await run_beside(read_artifact, artifact, self._namespace, size=size)
        except ChildProcessError as error:
            found = Fault(str(error))
        if isinstance(found, Alignment) and self._trust.signed:
            found = verify_alignment(found, artifact.row, self._trust)
        if isinstance(found, Fault):
            _logger.error("%s %s is not used: %s", artifact.row.id, artifact.row.version, found.message)
            self._unused[artifact.row.id] = found.message
            return None
        return found

    def _snapshot(self, revision: int) -> Snapshot:
        known = self._contents
        return Snapshot(
            [one for one in known.values() if isinstance(one, Ontology)],
            [self._as_confirmed(one) for one in known.values() if isinstance(one, Alignment)],
            {key[1]: context_of(one) for key, one in known.items() if isinstance(one, msgspec.Raw)},
            unused=self._unused,
            revision=revision,
            namespace=self._namespace,
            policy=self._policy,
        )

    def _as_confirmed(self, alignment: Alignment) -> Alignment:
        """Return an alignment with the operator that has confirmed exactly this content."""
        by = self._confirmed.get(alignment.digest, "")
        return msgspec.structs.replace(alignment, confirmed_by=by) if by else alignment


def verify_alignment(alignment: Alignment, row: ArtifactRow, trust: Trust) -> Alignment | Fault:
    """Verify a signature again: keys may have been added or removed since the artifact was registered."""
    if not row.signature:
        return Fault(UNSIGNED)
    signed = verify_artifact(row.signature, trust.keys)
    if isinstance(signed, Fault):
        return signed
    fault = signature_fault(signed, ArtifactStatement(row.kind, row.id, row.version, row.digest))
    return fault or msgspec.structs.replace(alignment, signer=signed.signer)


def read_artifact(artifact: Artifact, namespace: Namespace = DEFAULT) -> _Content | Fault:
    """Read a registered artifact, or say why it must not be used."""
    row = artifact.row
    if row.kind == "ontology":
        return read_registered(artifact, namespace)
    if hashlib.sha256(artifact.content).hexdigest() != row.digest:
        return Fault(f"the content of {row.id} {row.version} was changed: it does not have the registered digest")
    if row.kind == "context":
        return msgspec.Raw(artifact.content)
    document = read_json(artifact.content, f"{row.id} {row.version}")
    if document.alignment is None:
        return Fault(document.findings[0].message)
    said = {"id": row.id, "version": row.version, "signer": row.signer, "digest": row.digest}
    return msgspec.structs.replace(document.alignment, **said)


def context_of(content: msgspec.Raw) -> Any:
    """Return what a registered context stands for."""
    value = msgspec.json.decode(content)
    return value["@context"] if isinstance(value, dict) and "@context" in value else value
