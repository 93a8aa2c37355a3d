"""Registration of an alignment, judged against the ontologies and the artifact that a store has."""

from __future__ import annotations

from functools import partial

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
from bespeak.runtime.semantic.offloading import run_beside, run_in_thread
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
    document = await run_in_thread(read_alignment, offer.data, offer.file, offer.notation)
    if document.alignment is None:
        return JudgedAlignment(document.findings)
    read = document.alignment
    named = frozenset(iri for rule in read.rules for iri in (rule.source, rule.target))
    source, target = [await _ontology(store, ref, namespace, named) for ref in (read.source, read.target)]
    if isinstance(source, Fault) or isinstance(target, Fault):
        missing = [
            OTHER_ONTOLOGY.found(one.message, Location(offer.file), f"/{side}OntologyId")
            for side, one in (("source", source), ("target", target))
            if isinstance(one, Fault)
        ]
        return JudgedAlignment([*document.findings, *missing])
    latest = await _latest(store, read.id or offer.id)
    judging = partial(
        judge_alignment,
        source=source,
        target=target,
        replaces=latest,
        trust=trust,
        signature=offer.signature,
        for_registry=True,
        id=offer.id,
        version=offer.version,
    )
    return await run_in_thread(judging, offer.data, offer.file, offer.notation)


async def _ontology(store: Store, ref: OntologyRef, namespace: Namespace, named: frozenset[str]) -> Ontology | Fault:
    """Return the registered ontology with the named terms; the latest version if the artifact does not say one."""
    found: Artifact | None = await store.read(ReadArtifact("ontology", ref.id, ref.version or None))
    if found is None:
        return Fault(f"the alignment refers to {brief(str(ref).strip())}, which is not registered")
    return await run_beside(_read_terms, found, namespace, named, size=len(found.content))


def _read_terms(found: Artifact, namespace: Namespace, named: frozenset[str]) -> Ontology | Fault:
    """Read an ontology as far as an alignment refers to it."""
    read = read_registered(found, namespace)
    if isinstance(read, Fault):
        return read
    return msgspec.structs.replace(read, terms={iri: term for iri, term in read.terms.items() if iri in named})


async def _latest(store: Store, id_: str) -> Alignment | None:
    found: Artifact | None = await store.read(ReadArtifact("alignment", id_))
    document = await run_in_thread(read_json, found.content, id_) if found else None
    if found is None or document is None or document.alignment is None:
        return None
    return msgspec.structs.replace(document.alignment, signer=found.row.signer)
