"""Registration of an alignment, judged against the ontologies and the artifact that the store has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.target_store import use_store
from bespeak.checks.alignment.artifact import JudgedAlignment, Trust, judge_alignment
from bespeak.contract.ontology.alignment import Alignment
from bespeak.contract.ontology.ontology import Ontology, OntologyRef
from bespeak.documents.alignment.draft_json import read_json
from bespeak.documents.alignment.notation import read_alignment
from bespeak.documents.ontology.registered import read_registered
from bespeak.protocol.fault import Fault
from bespeak.state.identity.jws import PublicKey
from bespeak.state.store.commands.ontologies import Artifact, ReadArtifact, RegisterArtifact
from bespeak.state.store.store import Store


class AlignmentOffer(msgspec.Struct, frozen=True):
    """A document to register, and what it may not say itself."""

    data: bytes
    file: str
    id: str
    version: str
    signature: str
    keys: Mapping[str, PublicKey]


def command_for(place: str, offer: AlignmentOffer) -> RegisterArtifact:
    """Return the command that registers an alignment; end the command line if it is refused."""
    judged = asyncio.run(use_store(place, lambda store: _judge(store, offer)))
    print_findings(judged.findings)
    if judged.alignment is None:
        raise CommandFailedError(f"{offer.file} cannot be used as it is; see the findings")
    return judged.command(offer.file)


async def _judge(store: Store, offer: AlignmentOffer) -> JudgedAlignment:
    document = read_alignment(offer.data, offer.file)
    if document.alignment is None:
        return JudgedAlignment(document.findings)
    read = document.alignment
    source, target = [await _ontology(store, ref) for ref in (read.source, read.target)]
    return judge_alignment(
        *(offer.data, offer.file),
        source=source,
        target=target,
        replaces=await _latest(store, read.id or offer.id),
        trust=Trust(keys=offer.keys),
        signature=offer.signature,
        for_registry=True,
        id=offer.id,
        version=offer.version,
    )


async def _ontology(store: Store, ref: OntologyRef) -> Ontology:
    """Return the registered ontology; the latest version if the artifact does not say one."""
    found: Artifact | None = await store.read(ReadArtifact("ontology", ref.id, ref.version or None))
    if found is None:
        raise CommandFailedError(f"the alignment refers to {str(ref).strip()}, which is not registered")
    ontology = read_registered(found)
    if isinstance(ontology, Fault):
        raise CommandFailedError(ontology.message)
    return ontology


async def _latest(store: Store, id_: str) -> Alignment | None:
    found: Artifact | None = await store.read(ReadArtifact("alignment", id_))
    document = read_json(found.content, id_) if found else None
    if found is None or document is None or document.alignment is None:
        return None
    return msgspec.structs.replace(document.alignment, signer=found.row.signer)
