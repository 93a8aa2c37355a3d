"""Negotiation of a semantic profile with a service: direct, mapped or none, with its reasons (IoA 7.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.alignment.policy import Alignment, Policy
from bespeak.extensions.semantics.data import DataTranslation
from bespeak.extensions.semantics.knowledge import Snapshot
from bespeak.extensions.semantics.profile import (
    ACCEPTED,
    ProfilePolicy,
    SemanticProfile,
    Status,
    Verdict,
    Violation,
    judge,
)
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import Meanings, Ontology, OntologyRef, compare_versions
from bespeak.extensions.semantics.translation import ProfileTranslation, Translation, UsedMapping

MatchKind = Literal["direct", "mapped", "unmatched", "none"]
"""What came of a profile. It is unmatched if its vocabulary is understood, but nothing declares its capabilities."""
SHOWN: Final = ("rule", "path", "value", "message")  # what a peer is told of a violation
_PLAIN: Final = "!#$%&'()*+,/:;=?@[]~"  # characters of an IRI that a header has as they are
_LONGEST: Final = 200  # characters of an id in a header; the digest names the artifact in any case
_MOST_ARTIFACTS: Final = 8  # most artifacts that an answer or a record names


def write_mapping(mapping: Mapping[str, Any]) -> str:
    """Write the value of the header Semantic-Mapping, a dictionary of RFC 9651."""
    artifacts = " ".join(
        f"{_text(one['id'])};version={_text(one['version'])};sha256={_text(one['sha256'])}"
        f";signed=?{one['signed']:d};confirmed=?{one['confirmed']:d}"
        for one in mapping["artifacts"]
    )
    return f"confidence={round(mapping['confidence'], 3)}, artifacts=({artifacts})"


def _text(value: str) -> str:
    """Write a string for a header: ASCII, with everything else percent-encoded as in a URI; a long one is cut."""
    return f'"{quote(value[:_LONGEST], safe=_PLAIN)}"'


class SemanticOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a negotiation. Without a match, `verdict` says whether the profile may be renegotiated."""

    match: MatchKind
    explanation: tuple[str, ...]  # sentences for people
    verdict: Verdict = ACCEPTED
    confidence: float = 0.0  # of the match, 0 if nothing was matched; a direct match of all capabilities has 1
    ontology: OntologyRef | None = None  # ontology of the service that the profile is understood with
    mappings: tuple[UsedMapping, ...] = ()
    unmatched: tuple[str, ...] = ()  # capabilities, in the vocabulary of the service, that nobody declares
    profile: SemanticProfile | None = None  # profile in the vocabulary of the service
    data: DataTranslation | None = None  # how inputs and outputs are translated; None if they stay as they are

    @property
    def mapping(self) -> dict[str, Any] | None:
        """What a record says of a mapped call: its confidence, and the artifacts; None for any other."""
        steps = [step for used in self.mappings for step in used.translation.steps]
        if not steps:
            return None
        artifacts: dict[str, Any] = {}
        for step in steps:
            known = {"id": step.alignment, "version": step.version, "sha256": step.digest}
            artifacts[step.alignment] = {**known, "signed": step.trust > 0, "confirmed": step.confirmed}
        lowest = min(used.translation.confidence for used in self.mappings)
        return {"confidence": round(lowest, 4), "artifacts": list(artifacts.values())[:_MOST_ARTIFACTS]}

    def document(self) -> dict[str, Any]:
        verdict = self.verdict
        told: dict[str, Any] = {"match": self.match, "status": verdict.status, "confidence": round(self.confidence, 4)}
        if self.ontology is not None:
            told |= {"ontologyId": self.ontology.id, "ontologyVersion": self.ontology.version}
        if self.unmatched:
            told["unmatched"] = list(self.unmatched)
        if self.mappings:
            told["mappings"] = [one.document() for one in self.mappings]
        if self.data is not None:
            told["data"] = {"inputs": self.data.inputs, "outputs": self.data.outputs}
        told["explanation"] = list(self.explanation)
        if verdict.violations:
            told["validation"] = {"status": verdict.status, "reason": verdict.reason}
            told["violations"] = [{name: getattr(one, name) for name in SHOWN} for one in verdict.violations]
        return told


_NEGOTIABLE: Final[Mapping[str, Status]] = {
    rule.id: "renegotiate"
    for rule in (
        *(rules.UNKNOWN_ONTOLOGY, rules.UNKNOWN_ALIGNMENT, rules.UNCOVERED, rules.LOW_CONFIDENCE, rules.UNCONFIRMED),
        *(rules.VERSION_COMPATIBLE, rules.VERSION_ORDER, rules.UNTRANSLATED),
    )
}
"""Rules that another ontology, version or alignment can satisfy; by default they lead to a renegotiation."""
_SAME_MAJOR: Final = frozenset({"compatible", "older"})


class ServiceOffer(msgspec.Struct, frozen=True):
    spoken: tuple[str, ...]  # ids of the ontologies that it uses itself
    concepts: tuple[str, ...] = ()  # declared capabilities of the called endpoint, or of the service
    critical: bool = False  # True if a call cannot be undone
    own: tuple[str, ...] = ()  # the same in the vocabulary of the service itself
    whole: bool = False  # True if no endpoint is named, so that the profile may be for any of them
    endpoint: Endpoint | None = None  # endpoint whose data are translated
    elsewhere: tuple[str, ...] = ()  # capabilities of all endpoints, which other calls of a task may be for
    sensitive: frozenset[str] = frozenset()  # capabilities among these that no text names


class SemanticNegotiation:
    def __init__(self, settings: SemanticSettings | None = None) -> None:
        self.settings = settings or SemanticSettings()
        given = self.settings
        self.policy = ProfilePolicy(
            consistency="renegotiate" if given.violations == "renegotiate" else "reject",
            rules=msgspec.convert({**_NEGOTIABLE, **given.rules}, Mapping[str, Status]),
            strict_domains=given.strict_domains,
        )
        self.mapping_policy = msgspec.convert(
            {"threshold": given.threshold, "order": given.conflict_order, "priorities": given.priorities}, Policy
        )

    def negotiate(self, profile: SemanticProfile, offer: ServiceOffer, snapshot: Snapshot) -> SemanticOutcome:
        """Return what comes of a profile that has all of its members."""
        explanation: list[str] = []
        ontology, found = self._find_own(profile, offer, snapshot, explanation)
        if ontology is not None:
            return self._judge(profile, offer, snapshot, ontology, explanation=explanation)
        mapped, broken = self._translate(profile, offer, snapshot, explanation)
        if mapped is None:
            return self._fail([*(found if not broken else ()), *broken], explanation)
        translated, target, mappings, usable = mapped
        data = _translate_data(profile, offer, snapshot, target, usable)
        if data is not None:
            mappings += tuple(data.used.values())
        return self._judge(translated, offer, snapshot, target, explanation=explanation, mappings=mappings, data=data)

    def _find_own(
        self, profile: SemanticProfile, offer: ServiceOffer, snapshot: Snapshot, explanation: list[str]
    ) -> tuple[Ontology | None, list[Violation]]:
        wanted = OntologyRef(profile.ontology_id, profile.ontology_version)
        if wanted.id not in offer.spoken:
            own = ", ".join(offer.spoken) or "no ontology"
            explanation.append(f"The profile uses {wanted}; this service uses {own}.")
            return None, [Violation.of(rules.UNKNOWN_ONTOLOGY, "/ontologyId", wanted.id, own)]
        ontology = snapshot.serving(wanted.id, wanted.version)
        if ontology is not None:
            same = "the same version" if ontology.version == wanted.version else f"version {ontology.version} serves it"
            explanation.append(f"The profile uses {wanted}, which is the service's own ontology: {same}.")
            return ontology, []
        latest = snapshot.latest(wanted.id)
        provided = "" if latest is None else latest.version
        incomparable = compare_versions(provided, wanted.version) == "incomparable"
        rule = rules.VERSION_ORDER if incomparable else rules.VERSION_COMPATIBLE
        explanation.append(f"The profile uses {wanted}; version {provided or '-'} of the service does not serve it.")
        return None, [Violation.of(rule, "/ontologyVersion", wanted.version, provided)]

    def _translate(
        self, profile: SemanticProfile, offer: ServiceOffer, snapshot: Snapshot, explanation: list[str]
    ) -> tuple[tuple[SemanticProfile, Ontology, tuple[UsedMapping, ...], list[str]] | None, list[Violation]]:
        usable, broken = _find_alignments(profile, snapshot)
        if broken or not usable:
            explanation += [f"{one.message}." for one in broken]
            return None, broken
        first: list[Violation] = []
        # The core has no vocabulary.
        others = (one for one in offer.spoken if one not in (profile.ontology_id, snapshot.namespace.core))
        for target in filter(None, map(snapshot.latest, others)):
            translation = ProfileTranslation(snapshot.mappings, usable, target, lambda iri: snapshot.declaring([iri]))
            translated = translation.translate(profile)
            if not translation.broken:
                used = tuple(translation.used.values())
                explanation += [f"{one.translation.explain()}." for one in used]
                return (translated, target, used, usable), []
            first = first or translation.broken
        explanation += [f"{one.message}." for one in first]
        return None, first

    def _judge(
        self,
        profile: SemanticProfile,
        offer: ServiceOffer,
        snapshot: Snapshot,
        ontology: Ontology,
        *,
        explanation: list[str],
        mappings: tuple[UsedMapping, ...] | None = None,
        data: DataTranslation | None = None,
    ) -> SemanticOutcome:
        """Judge a profile in the vocabulary of the service: consistency, provenance, and whether it fits the call."""
        meanings = snapshot.meanings_with(ontology)
        broken = [*judge(profile, meanings, self.policy).violations, *(() if data is None else data.missing)]
        for used in mappings or () if offer.critical else ():  # what keeps it from a call that cannot be undone
            unconfirmed = used.translation.unconfirmed
            if unconfirmed is not None:
                broken.append(Violation.of(rules.UNCONFIRMED, "/alignmentRef", unconfirmed, used.source))
            if self.settings.require_provenance and snapshot.mappings.is_anonymous(used.translation):
                artifact = used.translation.steps[0].alignment
                broken.append(Violation.of(rules.PROVENANCE, "/alignmentRef", used.source, artifact))
        provided = (*offer.concepts, *offer.own) if ontology is snapshot.own else offer.concepts
        fits: dict[str, tuple[str, float]] = {}  # what provides a wanted capability, and how surely
        for wanted in profile.capability_refs:
            shares = [(own, share) for own in provided if (share := share_of(wanted, own, meanings))]
            if shares:
                fits[wanted] = max(shares, key=lambda one: one[1])
        for number, wanted in enumerate(profile.capability_refs) if provided and not offer.whole else ():
            if wanted not in fits and (not fits or not _is_provided(wanted, offer.elsewhere, meanings)):
                named = ", ".join(one for one in provided if one not in offer.sensitive) or "something else"
                broken.append(Violation.of(rules.NOT_PROVIDED, f"/capabilityRefs/{number}", wanted, named))
        if broken:
            explanation += [f"{one.message}." for one in broken]
            return self._fail(broken, explanation, ontology, data)
        explanation.append(_explain_fits(profile, fits, offer))
        return SemanticOutcome(
            match="unmatched" if not fits else "direct" if mappings is None else "mapped",
            explanation=tuple(explanation),
            confidence=_confidence(profile, fits, mappings or ()),
            ontology=ontology.ref,
            mappings=mappings or (),
            unmatched=tuple(one for one in profile.capability_refs if one not in fits),
            profile=profile,
            data=data,
        )

    def _fail(
        self,
        broken: Sequence[Violation],
        said: list[str],
        ontology: Ontology | None = None,
        data: DataTranslation | None = None,
    ) -> SemanticOutcome:
        rejected = any(self.policy.status_of(one) == "reject" for one in broken)
        verdict = Verdict("reject" if rejected else "renegotiate", tuple(broken))
        explained = (*said, "There is no match.")
        ref = None if ontology is None else ontology.ref
        return SemanticOutcome(match="none", explanation=explained, verdict=verdict, ontology=ref, data=data)


def _translate_data(
    profile: SemanticProfile, offer: ServiceOffer, snapshot: Snapshot, target: Ontology, usable: Sequence[str]
) -> DataTranslation | None:
    """Plan how the data of a call are translated; None if neither vocabulary has properties for them."""
    source = snapshot.serving(profile.ontology_id, profile.ontology_version) or snapshot.latest(profile.ontology_id)
    if offer.endpoint is None or source is None:
        return None
    translator = snapshot.mappings.translator(usable)
    strangers: dict[str, Violation] = {}  # artifacts that may not translate data, by id

    def find(iri: str, one: str, other: str) -> Translation | None:
        found = translator.translate(iri, one, other)
        if found is None or snapshot.mappings.refuses(found):
            return None
        if found.trust < 0:
            # What an agent has registered must not change what others send and receive.
            unconfirmed = next(step.alignment for step in found.steps if step.trust < 0)
            strangers[unconfirmed] = Violation.of(rules.UNCONFIRMED, "/alignmentRef", unconfirmed, iri)
            return None
        return found

    words = snapshot.words(source), snapshot.words(target)
    ways = (lambda iri: find(iri, source.id, target.id)), (lambda iri: find(iri, target.id, source.id))
    data = DataTranslation(*ways, *words, offer.endpoint)
    data.missing = [*strangers.values()] or data.missing
    return data if data.inputs or data.outputs or data.missing or words[0].has_properties else None


def _find_alignments(profile: SemanticProfile, snapshot: Snapshot) -> tuple[list[str], list[Violation]]:
    """Return the alignments that a profile may be translated with; one of them leads away from its ontology."""
    usable = [id_ for id_, one in sorted(snapshot.alignments.items()) if _fits(one, profile, snapshot)]
    ends = {ref.id for id_ in usable for ref in (snapshot.alignments[id_].source, snapshot.alignments[id_].target)}
    leaving = profile.ontology_id in ends
    if not profile.alignment_refs:
        return (usable if leaving else []), []
    broken = []
    for number, ref in enumerate(profile.alignment_refs):
        if ref not in usable or not leaving:
            fault = "for other ontologies" if ref in snapshot.alignments else snapshot.unused.get(ref, "not registered")
            broken.append(Violation.of(rules.UNKNOWN_ALIGNMENT, f"/alignmentRef/{number}", ref, fault))
    return [id_ for id_ in usable if id_ in profile.alignment_refs], broken


def _is_provided(wanted: str, provided: Sequence[str], meanings: Meanings) -> bool:
    return any(share_of(wanted, one, meanings) for one in provided)


def share_of(wanted: str, provided: str, meanings: Meanings) -> float | None:
    """Return how surely a capability provides a wanted one, if at all: one that is more general may not do it."""
    return 1.0 if meanings.subsumes(wanted, provided) else None


def _explain_fits(profile: SemanticProfile, fits: Mapping[str, tuple[str, float]], offer: ServiceOffer) -> str:
    who = "The service" if offer.whole else "The endpoint"
    if fits:
        provided = next(iter(fits.values()))[0]
        return f"{who} provides {'it' if provided in offer.sensitive else provided}."
    if not profile.capability_refs:
        return "The profile does not name a capability, so none was matched."
    return f"{who} does not declare that it provides {profile.capability_refs[0]}, so no capability was matched."


def _confidence(profile: SemanticProfile, fits: Mapping[str, tuple[str, float]], maps: Sequence[UsedMapping]) -> float:
    """Return how sure a match is: that of the maps and of the fits, for the part of the capabilities that fit."""
    if not fits:
        return 0.0
    share = len(fits) / len(set(profile.capability_refs))
    certain = min((used.translation.confidence for used in maps), default=1.0)
    return certain * min(surely for _, surely in fits.values()) * share


def _fits(alignment: Alignment, profile: SemanticProfile, snapshot: Snapshot) -> bool:
    """Return True if an alignment is for the versions at hand, or for others of the same major version (5.3)."""
    for end in (alignment.source, alignment.target):
        latest = snapshot.latest(end.id)
        at_hand = profile.ontology_version if end.id == profile.ontology_id else latest and latest.version
        if not at_hand or (end.version and compare_versions(at_hand, end.version) not in _SAME_MAJOR):
            return False
    return True
