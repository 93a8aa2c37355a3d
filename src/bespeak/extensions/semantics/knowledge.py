"""What a server knows of the registry: a snapshot in memory, replaced whenever any process registers something."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec

from bespeak.contract.core_ontology import CORE_VERSION, DEFAULT, Namespace
from bespeak.errors import ConfigError
from bespeak.extensions.semantics import store as registry
from bespeak.extensions.semantics.alignment.artifact import NOBODY, UNSIGNED, JudgedAlignment, Trust, judge_alignment
from bespeak.extensions.semantics.alignment.draft_json import read_json
from bespeak.extensions.semantics.alignment.names import words_of
from bespeak.extensions.semantics.alignment.notation import AlignmentNotation, read_alignment
from bespeak.extensions.semantics.alignment.policy import DEFAULT as DEFAULT_POLICY
from bespeak.extensions.semantics.alignment.policy import Alignment, Policy, pair_of, signed_pairs
from bespeak.extensions.semantics.data import Words
from bespeak.extensions.semantics.offloading import run_beside, run_in_thread
from bespeak.extensions.semantics.ontology.contexts import OntologyLimits
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.ontology.registration import Judged, judge_registration
from bespeak.extensions.semantics.ontology.triples import RdfNotation
from bespeak.extensions.semantics.rules import OTHER_ONTOLOGY
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import (
    Meanings,
    Ontology,
    OntologyRef,
    OntologyVersion,
    Term,
    compare_versions,
    parse_version,
)
from bespeak.extensions.semantics.translation import Mappings
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.background import Follower
from bespeak.runtime.concurrency import FairSemaphore
from bespeak.state.identity.jws import PublicKey
from bespeak.state.identity.key_files import parse_keys
from bespeak.state.identity.signed_document import ArtifactStatement, verify_artifact
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.source.tree import Location

_LEAST_SHARE: Final = 0.6  # lowest share of common words of a label that names a capability
_MOST_NAMED: Final = 5  # most capabilities that a text may name
_MOST_COMPARED: Final = 5_000  # labels that one text is compared with: agents write labels, and searches must be short


class CapabilityNames:
    """Immutable index, built beside the event loop, so that a search looks only at labels with common words."""

    def __init__(self, ontologies: Iterable[Ontology], meanings: Meanings) -> None:
        self.terms: Mapping[str, Term] = {
            iri: term for one in ontologies for iri, term in one.terms.items() if iri in meanings.capabilities
        }
        self._iris: dict[tuple[str, ...], list[str]] = {}
        self._labels: dict[str, list[tuple[str, ...]]] = {}  # labels by each of their words
        for iri, term in self.terms.items():
            names = (*term.labels, *(one.text for one in term.synonyms), *term.abbreviations, term.local_name)
            for words in {words_of(name) for name in names}:
                if words not in self._iris:
                    for word in set(words):
                        self._labels.setdefault(word, []).append(words)
                self._iris.setdefault(words, []).append(iri)
        self.intents: dict[str, str] = {}  # intent that requires a capability
        for intent in sorted(meanings.intents, reverse=True):
            self.intents |= dict.fromkeys(meanings.requires.get(intent, ()), intent)

    def find(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield the capabilities that a text names, with the share of its words that agree."""
        if text in self.terms:
            yield text, 1.0
            return
        words = set(words_of(text[:200]))
        scored = []
        for label in islice(self._candidates(words), _MOST_COMPARED):
            share = len(words & set(label)) / len(words | set(label))
            if share >= _LEAST_SHARE:
                scored += [(share, iri) for iri in self._iris[label]]
        for share, iri in sorted(scored, key=lambda one: (-one[0], one[1]))[:_MOST_NAMED]:
            yield iri, share

    def _candidates(self, words: set[str]) -> Iterator[tuple[str, ...]]:
        """Yield labels that may have enough of the words: they have one of the rarest."""
        rarest = sorted(words, key=lambda word: (len(self._labels.get(word, ())), word))
        enough = len(words) - int(_LEAST_SHARE * len(words)) + 1
        seen: set[tuple[str, ...]] = set()
        for label in (label for word in rarest[:enough] for label in self._labels.get(word, ())):
            if label not in seen:
                seen.add(label)
                yield label


OUTRANKED: Final = "it is unsigned, and a signed artifact is for the same ontologies"
_MOST_INDEXES: Final = 8  # indexes with an older version of an ontology that are kept


class Snapshot:
    """Ontologies by id, the latest version last; alignments; contexts."""

    def __init__(
        self,
        ontologies: Iterable[Ontology] = (),
        alignments: Iterable[Alignment] = (),
        contexts: Mapping[str, Any] | None = None,
        *,
        unused: Mapping[str, str] | None = None,
        revision: int = 0,
        namespace: Namespace = DEFAULT,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """Index what is registered; `unused` says why other artifacts are left out, by id."""
        self.revision = revision
        self.namespace = namespace
        self.contexts = contexts or {}
        # Every service speaks the core: its profiles may use the terms of all registered ontologies (Figure 5).
        given = (Ontology(id=namespace.core, version=CORE_VERSION, terms={}), *ontologies)
        # In the order of registration: no later one may say what the terms of an earlier one mean.
        self.ontologies: dict[str, list[Ontology]] = {one.id: [] for one in given}
        for ontology in sorted(given, key=lambda one: _order(one.version)):
            self.ontologies[ontology.id].append(ontology)
        latest: dict[str, Alignment] = {}
        for alignment in sorted(alignments, key=lambda one: (bool(one.signer), _order(one.version))):
            latest[alignment.id] = alignment
        signed = signed_pairs(latest.values())
        outranked = (id_ for id_, one in latest.items() if not one.signer and pair_of(one) in signed)
        self.unused = {**(unused or {}), **dict.fromkeys(outranked, OUTRANKED)}  # why artifacts are not used, by id
        self.alignments = {id_: one for id_, one in latest.items() if self.unused.get(id_) != OUTRANKED}
        self.mappings = Mappings((one for _, one in sorted(self.alignments.items())), policy)
        self.own: Ontology | None = None  # vocabulary of the service itself, which is not registered
        newest = list(self._latest())
        self.meanings = Meanings(newest, namespace)
        self.names = CapabilityNames(newest, self.meanings)
        self._older: dict[tuple[str, str], Meanings] = {}
        self._words: dict[OntologyRef, Words] = {}

    def words(self, ontology: Ontology) -> Words:
        """Return the terms of an ontology by the names that data have for them."""
        if ontology.ref not in self._words:
            if len(self._words) >= _MOST_INDEXES:
                self._words.pop(next(iter(self._words)))
            self._words[ontology.ref] = Words(ontology)
        return self._words[ontology.ref]

    def with_own(self, own: Ontology) -> Snapshot:
        """Return the same registry beside the vocabulary of a service. The index with its terms is built when used."""
        extended = copy.copy(self)
        extended.own = own
        extended.ontologies = {**self.ontologies, own.id: [own]}
        extended._older = {}
        return extended

    def latest(self, id: str) -> Ontology | None:  # noqa: A002 - the word of the draft
        return self.ontologies[id][-1] if id in self.ontologies else None

    def serving(self, id: str, version: str) -> Ontology | None:  # noqa: A002
        """Return the highest version of an ontology that serves a requested one; an artifact may not name one."""
        if not version:
            return self.latest(id)
        versions = self.ontologies.get(id, ())
        return next((one for one in reversed(versions) if compare_versions(one.version, version) == "compatible"), None)

    def declaring(self, iris: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of the ontologies that declare any of the terms."""
        wanted = frozenset(iris)
        return tuple(sorted(one.id for one in self._latest() if not wanted.isdisjoint(one.terms)))

    def is_below(self, iri: str, others: Iterable[str]) -> bool:
        return any(self.meanings.subsumes(one, iri) for one in others)

    def meanings_with(self, ontology: Ontology) -> Meanings:
        """Return the index over one version of an ontology and the latest ones of all others: conflicts need both."""
        if ontology is self.latest(ontology.id) and ontology is not self.own:
            return self.meanings
        key = (ontology.id, ontology.version)
        if key not in self._older:
            if len(self._older) >= _MOST_INDEXES:
                self._older.pop(next(iter(self._older)))
            if ontology is self.own:
                # It has names of its own, so that what is known already stays as it is.
                self._older[key] = self.meanings.beside(ontology)
            else:
                versions = (ontology if one.id == ontology.id else one for one in self._latest())
                self._older[key] = Meanings(versions, self.namespace)
        return self._older[key]

    def _latest(self) -> Iterator[Ontology]:
        return (versions[-1] for versions in self.ontologies.values() if versions[-1] is not self.own)


def _order(version: str) -> tuple[bool, OntologyVersion]:
    parsed = parse_version(version)
    return parsed is not None, parsed or OntologyVersion(dated=False, parts=(0,))


_logger = logging.getLogger(__name__)

MOST_ARTIFACTS: Final = registry.MOST_REGISTERED  # most artifacts in memory; the oldest are read first

_RegisteredContent = Ontology | Alignment | msgspec.Raw
# What was admitted to the registry is read whole, even if the default limits have become lower since.
_ADMITTED: Final = OntologyLimits(size=registry.MOST_CONTENT, triples=10_000_000, characters=4 * registry.MOST_CONTENT)


class Knowledge:
    """Follows the registry of a store. `snapshot` is replaced by one assignment."""

    def __init__(self, namespace: Namespace = DEFAULT, policy: Policy = DEFAULT_POLICY, trust: Trust = NOBODY) -> None:
        self._namespace = namespace
        self._policy = policy
        self._trust = trust
        self._confirmed: dict[str, str] = {}  # operators that have confirmed alignments, by digest
        self._unused: dict[str, str] = {}  # why alignments are not used, by id
        follower = Follower(registry.REGISTRY_TOPIC, self._take_in)
        self.follow, self.refresh, self.close = follower.follow, follower.refresh, follower.close
        self._contents: dict[tuple[str, str, str], _RegisteredContent] = {}
        self.snapshot = Snapshot(namespace=namespace)  # what is known now
        self.changed: Callable[[], None] = lambda: None  # called after the snapshot has been replaced

    async def _take_in(self, store: Store) -> None:
        before = latest = self.snapshot.revision
        confirmed: dict[str, str] = await store.read(registry.ListConfirmed())
        rows: list[registry.ArtifactRow] = await store.read(registry.ListArtifacts(since=latest, limit=MOST_ARTIFACTS))
        for row in rows:
            latest = max(latest, row.revision)
            if len(self._contents) >= MOST_ARTIFACTS:
                _logger.warning("the registry has more than %d artifacts; %s is not used", MOST_ARTIFACTS, row.id)
                continue
            artifact: registry.Artifact | None = await store.read(registry.ReadArtifact(row.kind, row.id, row.version))
            content = None if artifact is None else await self._read(artifact)
            if content is not None:
                self._contents[row.kind, row.id, row.version] = content
        if latest != before or confirmed != self._confirmed:
            self._confirmed = confirmed
            self.snapshot = await run_in_thread(self._snapshot, latest)
            self.changed()

    async def _read(self, artifact: registry.Artifact) -> _RegisteredContent | None:
        """Read an artifact, which takes up to seconds; calls go on with what was known before."""
        # Before the first snapshot, there are no calls that a thread could hold up.
        size = len(artifact.content) if self.snapshot.revision else 0
        found: _RegisteredContent | Fault
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
        alignments = []
        for one in (one for one in known.values() if isinstance(one, Alignment)):
            # The operator has confirmed exactly this content.
            by = self._confirmed.get(one.digest) or one.confirmed_by
            alignments.append(msgspec.structs.replace(one, confirmed_by=by))
        contexts = {key[1]: msgspec.json.decode(one) for key, one in known.items() if isinstance(one, msgspec.Raw)}
        return Snapshot(
            [one for one in known.values() if isinstance(one, Ontology)],
            alignments,
            {id_: one.get("@context", one) if isinstance(one, dict) else one for id_, one in contexts.items()},
            unused=self._unused,
            revision=revision,
            namespace=self._namespace,
            policy=self._policy,
        )


def verify_alignment(alignment: Alignment, row: registry.ArtifactRow, trust: Trust) -> Alignment | Fault:
    """Verify a signature again: keys may have been added or removed since the artifact was registered."""
    if not row.signature:
        return Fault(UNSIGNED)
    signer = verify_artifact(row.signature, ArtifactStatement(row.kind, row.id, row.version, row.digest), trust.keys)
    return signer if isinstance(signer, Fault) else msgspec.structs.replace(alignment, signer=signer)


def read_artifact(artifact: registry.Artifact, namespace: Namespace = DEFAULT) -> _RegisteredContent | Fault:
    """Read a registered artifact, or say why it must not be used."""
    row, file = artifact.row, f"{artifact.row.id} {artifact.row.version}"
    if hashlib.sha256(artifact.content).hexdigest() != row.digest:
        return Fault(f"the content of {file} was changed: it does not have the registered digest")
    if row.kind == "context":
        return msgspec.Raw(artifact.content)
    if row.kind == "ontology":
        given: dict[str, Any] = {"id": row.id, "version": row.version, "namespace": namespace}
        ontology, findings = read_ontology(artifact.content, file, "nquads", limits=_ADMITTED, **given)
        return ontology if ontology is not None else Fault(findings[0].message)
    document = read_json(artifact.content, file)
    if document.alignment is None:
        return Fault(document.findings[0].message)
    said = {"id": row.id, "version": row.version, "signer": row.signer, "digest": row.digest}
    return msgspec.structs.replace(document.alignment, **said, of_agent=row.of_agent)


Notation = TypeVar("Notation", AlignmentNotation, RdfNotation)


class Offer(msgspec.Struct, Generic[Notation], frozen=True, kw_only=True):
    """A document to register, and what it may not say itself."""

    data: bytes
    file: str  # where it comes from; empty if that is not told
    notation: Notation | None = None
    id: str = ""
    version: str = ""
    signature: str = ""
    actor: str = ""


async def judge_offer(
    store: Store, offer: Offer[AlignmentNotation], trust: Trust, namespace: Namespace = DEFAULT
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
    before: registry.Artifact | None = await store.read(registry.ReadArtifact("alignment", read.id or offer.id))
    latest = (await run_in_thread(read_json, before.content, before.row.id)).alignment if before else None
    if before and latest:
        latest = msgspec.structs.replace(latest, signer=before.row.signer)
    judging = partial(judge_alignment, source=source, target=target, replaces=latest, trust=trust, for_registry=True)
    judging = partial(judging, signature=offer.signature, id=offer.id, version=offer.version)
    return await run_in_thread(judging, offer.data, offer.file, offer.notation)


async def _ontology(store: Store, ref: OntologyRef, namespace: Namespace, named: frozenset[str]) -> Ontology | Fault:
    """Return the registered ontology with the named terms; the latest version if the artifact does not say one."""
    found: registry.Artifact | None = await store.read(registry.ReadArtifact("ontology", ref.id, ref.version or None))
    if found is None:
        return Fault(f"the alignment refers to {brief(str(ref).strip())}, which is not registered")
    return await run_beside(_read_terms, found, namespace, named, size=len(found.content))


def _read_terms(found: registry.Artifact, namespace: Namespace, named: frozenset[str]) -> Ontology | Fault:
    read = read_artifact(found, namespace)
    if isinstance(read, Fault):
        return read
    assert isinstance(read, Ontology), "an alignment refers to ontologies"
    return msgspec.structs.replace(read, terms={iri: term for iri, term in read.terms.items() if iri in named})


_MOST_OF_ONE: Final = 16  # documents of one agent that wait; agents take turns


class OntologyRegistry:
    """Judges offers. Constructed once per server; the store is that of each call."""

    def __init__(self, settings: SemanticSettings, trust: Trust = NOBODY) -> None:
        self.settings = settings
        self.trust = trust
        self._quota = registry.Quota(settings.most_artifacts, settings.most_bytes)
        self.turns = FairSemaphore(1, most=256, most_of_one=_MOST_OF_ONE)

    async def judge(self, offer: Offer[RdfNotation]) -> registry.RegisterArtifact | list[Diagnostic] | Fault:
        """Return the command that registers an offer, the findings of its document, or the fault of its signature."""
        async with self.turns.take(offer.actor):
            judged = await run_beside(_judge, offer, self.settings.namespace, size=len(offer.data))
        if judged.command is None:
            return judged.findings
        signer: str | Fault = ""
        if offer.signature:
            signer = verify_artifact(offer.signature, judged.statement, self.trust.keys)
        elif self.settings.require_signature:
            signer = Fault("a signature of a trusted key is required")
        if isinstance(signer, Fault):
            return signer
        command = msgspec.structs.replace(judged.command, signer=signer, signature=offer.signature, source=offer.file)
        return self._bound(command, offer.actor)

    async def judge_alignment(
        self, offer: Offer[AlignmentNotation], store: Store
    ) -> registry.RegisterArtifact | list[Diagnostic]:
        async with self.turns.take(offer.actor):
            judged = await judge_offer(store, offer, self.trust, self.settings.namespace)
        return judged.findings if judged.alignment is None else self._bound(judged.command(offer.file), offer.actor)

    def _bound(self, command: registry.RegisterArtifact, actor: str) -> registry.RegisterArtifact:
        return msgspec.structs.replace(command, actor=actor, ranks=self.trust.ranks, quota=self._quota)


def _judge(offer: Offer[RdfNotation], namespace: Namespace) -> Judged:
    """Judge an ontology; the findings are those of the agent, who gets no more than the command."""
    file, id_, version = offer.file or "document", offer.id, offer.version
    judged = judge_registration(offer.data, file, offer.notation, id=id_, version=version, namespace=namespace)
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
