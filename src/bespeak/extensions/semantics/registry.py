"""The registry as agents use it: documents are judged and signatures verified before anything is registered."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Final

import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.alignment.artifact import NO_TRUST, JudgedAlignment, Trust, judge_alignment
from bespeak.extensions.semantics.alignment.draft_json import read_json
from bespeak.extensions.semantics.alignment.notation import AlignmentNotation, read_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment
from bespeak.extensions.semantics.alignment.rules import OTHER_ONTOLOGY
from bespeak.extensions.semantics.offloading import run_beside, run_in_thread
from bespeak.extensions.semantics.ontology.canonical import read_registered
from bespeak.extensions.semantics.ontology.registration import Judged, judge_registration
from bespeak.extensions.semantics.ontology.triples import RdfNotation
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.store import Artifact, Quota, ReadArtifact, RegisterArtifact
from bespeak.extensions.semantics.terms import Ontology, OntologyRef
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.concurrency import FairSemaphore
from bespeak.state.identity.artifact_signature import ArtifactStatement, signature_fault, verify_artifact
from bespeak.state.identity.jws import PublicKey
from bespeak.state.identity.key_files import parse_keys
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.source.tree import Location


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
        faults = [(side, one) for side, one in (("source", source), ("target", target)) if isinstance(one, Fault)]
        place = Location(offer.file)
        missing = [OTHER_ONTOLOGY.found(one.message, place, f"/{side}OntologyId") for side, one in faults]
        return JudgedAlignment([*document.findings, *missing])
    latest = await _latest(store, read.id or offer.id)
    judging = partial(judge_alignment, source=source, target=target, replaces=latest, trust=trust, for_registry=True)
    judging = partial(judging, signature=offer.signature, id=offer.id, version=offer.version)
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


_MOST_WAITING: Final = 256
_MOST_OF_ONE: Final = 16  # documents of one agent that wait; agents take turns


class OntologyOffer(msgspec.Struct, frozen=True, kw_only=True):
    document: bytes
    notation: RdfNotation
    actor: str
    id: str = ""
    version: str = ""
    source: str = ""
    signature: str = ""


class OntologyRegistry:
    """Judges offers. Constructed once per server; the store is that of each call."""

    def __init__(self, settings: SemanticSettings, trust: Trust = NO_TRUST) -> None:
        self.settings = settings
        self.trust = trust
        self._quota = Quota(settings.most_artifacts, settings.most_bytes)
        self._turns = FairSemaphore(1, most=_MOST_WAITING, most_of_one=_MOST_OF_ONE)

    def has_room(self, actor: str) -> bool:
        """Return True if an agent may offer another document now."""
        return self._turns.has_room(actor)

    async def judge(self, offer: OntologyOffer) -> RegisterArtifact | list[Diagnostic] | Fault:
        """Return the command that registers an offer, the findings of its document, or the fault of its signature."""
        async with self._turns.take(offer.actor):
            judged = await run_beside(_judge, offer, self.settings.namespace, size=len(offer.document))
        if judged.command is None:
            return judged.findings
        signer = self.verify(offer.signature, judged.statement)
        if isinstance(signer, Fault):
            return signer
        command = msgspec.structs.replace(judged.command, signer=signer, signature=offer.signature, source=offer.source)
        return msgspec.structs.replace(command, actor=offer.actor, ranks=self.trust.ranks, quota=self._quota)

    async def judge_alignment(
        self, offer: AlignmentOffer, actor: str, store: Store
    ) -> RegisterArtifact | list[Diagnostic]:
        """Return the command that registers an alignment, or the findings of its document."""
        async with self._turns.take(actor):
            judged = await judge_offer(store, offer, self.trust, self.settings.namespace)
        if judged.alignment is None:
            return judged.findings
        command = judged.command(offer.file)
        return msgspec.structs.replace(command, actor=actor, ranks=self.trust.ranks, quota=self._quota)

    def verify(self, signature: str, statement: ArtifactStatement) -> str | Fault:
        """Return the id of the key that signed a statement, or an empty string if nothing is signed or must be."""
        if not signature:
            return Fault("a signature of a trusted key is required") if self.settings.require_signature else ""
        signed = verify_artifact(signature, self.trust.keys)
        return signed if isinstance(signed, Fault) else signature_fault(signed, statement) or signed.signer


def _judge(offer: OntologyOffer, namespace: Namespace) -> Judged:
    """Judge an ontology; the findings are those of the agent, who gets no more than the command."""
    file, id_, version = offer.source or "document", offer.id, offer.version
    judged = judge_registration(offer.document, file, offer.notation, id=id_, version=version, namespace=namespace)
    return msgspec.structs.replace(judged, ontology=None)


def open_registry(settings: SemanticSettings) -> OntologyRegistry:
    """Open the registry of a server; raise ConfigError if its keys or the extra are missing."""
    if importlib.util.find_spec("pyoxigraph") is None:
        raise ConfigError("`registry` of [semantic] needs its extra: pip install 'bespeak[semantic]'")
    return OntologyRegistry(settings, read_trust(settings))


def read_trust(settings: SemanticSettings) -> Trust:
    """Return whose signatures count; raise ConfigError if the settings contradict each other."""
    if settings.require_signature and not settings.trusted_keys:
        raise ConfigError("`require_signature` of [semantic] needs `trusted_keys`; name the keys that may sign.")
    stranger = next((text for text in settings.signer_ranks if text not in settings.trusted_keys), None)
    if stranger is not None:
        raise ConfigError(f"`signer_ranks` of [semantic] names {stranger[:80]}, which is not in `trusted_keys`.")
    keys: dict[str, PublicKey] = {}
    ranks: dict[str, int] = {}
    for text in settings.trusted_keys:
        found = parse_keys(text)
        if isinstance(found, Fault):
            raise ConfigError(f"`trusted_keys` of [semantic]: {text}: {found.message}")
        keys |= found
        ranks |= dict.fromkeys(found, settings.signer_ranks.get(text, 0))
    return Trust(keys=keys, ranks=ranks, signed=bool(keys))
