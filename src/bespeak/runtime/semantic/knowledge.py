"""What a server knows of the registry, in memory: read again whenever any process registers something."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Any, Final

import msgspec

from bespeak.checks.alignment.policy import Policy
from bespeak.checks.alignment.resolution import DEFAULT as DEFAULT_POLICY
from bespeak.contract.ontology.alignment import Alignment
from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.documents.alignment.draft_json import read_json
from bespeak.documents.ontology.registered import read_registered
from bespeak.protocol.fault import Fault
from bespeak.runtime.follower import Follower
from bespeak.runtime.semantic.snapshot import Snapshot
from bespeak.state.store.commands.ontologies import TOPIC, Artifact, ArtifactRow, ListArtifacts, ReadArtifact
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

MOST_ARTIFACTS: Final = 2_000
"""Most artifacts in memory; the oldest are read first."""

_Content = Ontology | Alignment | msgspec.Raw


class Knowledge:
    """Follows the registry of a store. `snapshot` is replaced by one assignment."""

    def __init__(self, namespace: Namespace = DEFAULT, policy: Policy = DEFAULT_POLICY) -> None:
        self._namespace = namespace
        self._policy = policy
        self._follower = Follower(TOPIC, self._take_in)
        self._contents: dict[tuple[str, str, str], _Content] = {}
        self.snapshot = Snapshot(namespace=namespace)
        """What is known now."""

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
        rows: list[ArtifactRow] = await store.read(ListArtifacts(since=revision, limit=MOST_ARTIFACTS))
        for row in rows:
            revision = max(revision, row.revision)
            if len(self._contents) >= MOST_ARTIFACTS:
                _logger.warning("the registry has more than %d artifacts; %s is not used", MOST_ARTIFACTS, row.id)
                continue
            artifact: Artifact | None = await store.read(ReadArtifact(row.kind, row.id, row.version))
            # Parsing takes up to seconds, in which calls go on with what was known before.
            content = None if artifact is None else await asyncio.to_thread(self._read, artifact)
            if content is not None:
                self._contents[row.kind, row.id, row.version] = content
        if revision != before:
            self.snapshot = await asyncio.to_thread(self._snapshot, revision)

    def _read(self, artifact: Artifact) -> _Content | None:
        found = read_artifact(artifact, self._namespace)
        if isinstance(found, Fault):
            _logger.error("a registered artifact is not used: %s", found.message)
            return None
        return found

    def _snapshot(self, revision: int) -> Snapshot:
        known = self._contents
        return Snapshot(
            [one for one in known.values() if isinstance(one, Ontology)],
            [one for one in known.values() if isinstance(one, Alignment)],
            {key[1]: context_of(one) for key, one in known.items() if isinstance(one, msgspec.Raw)},
            revision=revision,
            namespace=self._namespace,
            policy=self._policy,
        )


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
    return msgspec.structs.replace(document.alignment, id=row.id, version=row.version, signer=row.signer)


def context_of(content: msgspec.Raw) -> Any:
    """Return what a registered context stands for."""
    value = msgspec.json.decode(content)
    return value["@context"] if isinstance(value, dict) and "@context" in value else value
