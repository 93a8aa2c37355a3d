"""Registration of an alignment, judged against the ontologies and the artifact that a store has."""

from __future__ import annotations

import asyncio

import msgspec

from bespeak.checks.alignment.artifact import JudgedAlignment, Trust, judge_alignment
from bespeak.contract.ontology.alignment import Alignment
from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology, OntologyRef
from bespeak.documents.alignment.draft_json import read_json
from bespeak.documents.alignment.notation import AlignmentNotation, read_alignment
from bespeak.documents.alignment.rules import OTHER_ONTOLOGY
from bespeak.documents.ontology.registered import read_registered
from bespeak.protocol.fault import Fault
from bespeak.state.store.commands.ontologies import Artifact, ReadArtifact
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.brief import brief
from bespeak.text.source.span import Location


class AlignmentOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A document to register, and what it may not say itself."""

    data: bytes
    file: str
    notation: AlignmentNotation | None = None
    id: str = ""
    version: str = ""
    signature: str = ""


async def judge_offer(
    store: Store, offer: AlignmentOffer, trust: Trust, namespace: Namespace = DEFAULT
) -> JudgedAlignment:
    """Judge an alignment against what is registered; parsing takes up to seconds, in which other calls go on."""
    document = await asyncio.to_thread(read_alignment, offer.data, offer.file, offer.notation)
    if document.alignment is None:
        return JudgedAlignment(document.findings)
    read = document.alignment
    source, target = [await _ontology(store, ref, namespace) for ref in (read.source, read.target)]
    if isinstance(source, Fault) or isinstance(target, Fault):
        missing = [
            OTHER_ONTOLOGY.found(one.message, Location(offer.file), f"/{side}OntologyId")
            for side, one in (("source", source), ("target", target))
            if isinstance(one, Fault)
        ]
        return JudgedAlignment([*document.findings, *missing])
    latest = await _latest(store, read.id or offer.id)
    return await asyncio.to_thread(
        judge_alignment,
        *(offer.data, offer.file, offer.notation),
        source=source,
        target=target,
        replaces=latest,
        trust=trust,
        signature=offer.signature,
        for_registry=True,
        id=offer.id,
        version=offer.version,
    )


async def _ontology(store: Store, ref: OntologyRef, namespace: Namespace) -> Ontology | Fault:
    """Return the registered ontology; the latest version if the artifact does not say one."""
    found: Artifact | None = await store.read(ReadArtifact("ontology", ref.id, ref.version or None))
    if found is None:
        return Fault(f"the alignment refers to {brief(str(ref).strip())}, which is not registered")
    return await asyncio.to_thread(read_registered, found, namespace)


async def _latest(store: Store, id_: str) -> Alignment | None:
    found: Artifact | None = await store.read(ReadArtifact("alignment", id_))
    document = await asyncio.to_thread(read_json, found.content, id_) if found else None
    if found is None or document is None or document.alignment is None:
        return None
    return msgspec.structs.replace(document.alignment, signer=found.row.signer)
