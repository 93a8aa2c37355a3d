"""Alignment artifacts as the draft writes them (IoA 7.2): a JSON object, with more members for each rule."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from bespeak.contract.core_ontology import is_iri
from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule, Provenance, Unmapped
from bespeak.extensions.semantics.terms import OntologyRef
from bespeak.state.identity.signed_document import ArtifactStatement
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.reading.json_data import json_value
from bespeak.text.source.tree import Location

MOST_BYTES: Final = 16 * 1024 * 1024
MOST_RULES: Final = 100_000


class AlignmentDocument(msgspec.Struct, frozen=True):
    """Result of reading: None and an error if the artifact is refused."""

    alignment: Alignment | None
    findings: list[Diagnostic]
    signature: str = ""  # token of the signature that the document carries, not yet verified


class RulePlace(msgspec.Struct, frozen=True):
    line: int = 0
    pointer: str = ""


class Collector:
    def __init__(self, file: str, prefixes: Mapping[str, str] | None = None) -> None:
        self._file = file
        self.prefixes = dict(prefixes or {})
        self.findings: list[Diagnostic] = []
        self._rules: dict[tuple[str, str], MappingRule] = {}
        self._refused = False

    def report(self, rule: Rule, message: str, place: RulePlace, *, warning: bool = False) -> None:
        """Add a finding. Those beyond the limit are not listed, but an error still refuses the artifact."""
        self._refused |= not warning
        if len(self.findings) < 50:
            where = Location(self._file, place.line)
            self.findings.append(rule.found(message, where, place.pointer, severity="warning" if warning else None))

    def iri(self, text: str, what: str, place: RulePlace) -> str:
        """Return an IRI, with its prefix expanded; report a name that is not valid."""
        prefix, colon, rest = text.partition(":")
        found = self.prefixes[prefix] + rest if colon and prefix in self.prefixes else text
        if not is_iri(found):
            self.report(rules.ALIGNMENT_IRI, f"{what} must be an absolute IRI; got {brief(text)}", place)
        return found

    def add(self, rule: MappingRule, place: RulePlace) -> None:
        """Add a rule. An exact repetition is left out; a repetition that differs is an error."""
        for name, value in (("confidence", rule.confidence), ("score", rule.score), *rule.signals.items()):
            if value is not None and not 0 <= value <= 1:
                self.report(rules.CONFIDENCE, f"{brief(name)} must be from 0 to 1; got {value}", place)
        if rule.values is not None and rule.values.fault is not None:
            self.report(rules.VALUES, rule.values.fault, place)
        if self._rules.setdefault((rule.source, rule.target), rule) != rule:
            differing = f"{brief(rule.source)} and {brief(rule.target)}"
            self.report(rules.CONFLICT, f"a second rule for {differing} differs from the first", place)
        if len(self._rules) == MOST_RULES + 1:
            self.report(rules.ALIGNMENT_TOO_LARGE, f"an alignment may have {MOST_RULES} rules", place)

    @property
    def is_full(self) -> bool:
        return len(self._rules) > MOST_RULES

    @property
    def rules(self) -> tuple[MappingRule, ...]:
        return tuple(self._rules.values())

    def document(self, alignment: Alignment | None, signature: str = "") -> AlignmentDocument:
        """Return the result; an artifact with errors is refused as a whole."""
        given = alignment.given_confidence if alignment else None
        if given is not None and not 0 <= given <= 1:
            self.report(rules.CONFIDENCE, f"the confidence must be from 0 to 1; got {given}", RulePlace())
        return AlignmentDocument(None if self._refused else alignment, self.findings, signature)


def check_size(data: bytes, file: str) -> Diagnostic | None:
    if len(data) <= MOST_BYTES:
        return None
    return rules.ALIGNMENT_TOO_LARGE.found(f"an alignment may have {MOST_BYTES} bytes; got {len(data)}", Location(file))


T = TypeVar("T", bound=msgspec.Struct)

_MEMBERS: Final = {
    **dict.fromkeys(("confidence", "score", "signals"), rules.CONFIDENCE),
    "relation": rules.RELATION,
    "values": rules.VALUES,
}


class _WrittenAlignment(msgspec.Struct, rename="camel", omit_defaults=True):
    source_ontology_id: str
    target_ontology_id: str
    mapping_rules: list[Any]
    source_ontology_version: str = ""
    target_ontology_version: str = ""
    id: str = ""
    version: str = ""
    confidence: float | None = None
    provenance: Provenance | None = None
    signature: str = ""
    unmapped: list[Unmapped] = []


def write_json(alignment: Alignment, signature: str = "") -> bytes:
    return msgspec.json.format(msgspec.json.encode(_artifact(alignment, signature)), indent=2) + b"\n"


def canonical_json(alignment: Alignment) -> bytes:
    """Return the bytes that the digest of an artifact is made of, whatever notation it was read from."""
    return msgspec.json.encode(_artifact(alignment, ""), order="sorted")


def statement_of(alignment: Alignment) -> ArtifactStatement:
    digest = hashlib.sha256(canonical_json(alignment)).hexdigest()
    return ArtifactStatement("alignment", alignment.id, alignment.version, digest)


def read_json(data: bytes, file: str) -> AlignmentDocument:
    """Read an artifact. Names may have prefixes of an inline `@context`."""
    value = check_size(data, file) or json_value(data, file)
    if isinstance(value, Diagnostic):
        return AlignmentDocument(None, [value])
    context = value.get("@context") if isinstance(value, dict) else None
    terms = list(context.items())[:1_000] if isinstance(context, dict) else []
    collector = Collector(file, {name: iri for name, iri in terms if isinstance(iri, str) and iri[-1:] in ("#", "/")})
    artifact = _convert(value, _WrittenAlignment, collector, "")
    if artifact is None:
        return collector.document(None)
    for place, raw in enumerate(artifact.mapping_rules):
        if collector.is_full:
            break
        pointer = f"/mappingRules/{place}"
        rule = _convert(raw, MappingRule, collector, pointer)
        if rule is not None:
            source = collector.iri(rule.source, "from", RulePlace(pointer=f"{pointer}/from"))
            target = collector.iri(rule.target, "to", RulePlace(pointer=f"{pointer}/to"))
            collector.add(msgspec.structs.replace(rule, source=source, target=target), RulePlace(pointer=pointer))
    source, target = (
        collector.iri(getattr(artifact, f"{side}_ontology_id"), name, RulePlace(pointer=f"/{name}"))
        for side, name in (("source", "sourceOntologyId"), ("target", "targetOntologyId"))
    )
    alignment = Alignment(
        source=OntologyRef(source, artifact.source_ontology_version),
        target=OntologyRef(target, artifact.target_ontology_version),
        rules=collector.rules,
        unmapped=tuple(_unmapped(artifact.unmapped, collector)),
        id=artifact.id,
        version=artifact.version,
        given_confidence=artifact.confidence,
        provenance=artifact.provenance,
    )
    return collector.document(alignment, artifact.signature)


def _unmapped(given: list[Unmapped], collector: Collector) -> Iterator[Unmapped]:
    for number, one in enumerate(given[:MOST_RULES]):
        place = RulePlace(pointer=f"/unmapped/{number}/from")
        yield msgspec.structs.replace(one, source=collector.iri(one.source, "from", place))


def _artifact(alignment: Alignment, signature: str) -> _WrittenAlignment:
    return _WrittenAlignment(
        source_ontology_id=alignment.source.id,
        target_ontology_id=alignment.target.id,
        source_ontology_version=alignment.source.version,
        target_ontology_version=alignment.target.version,
        mapping_rules=list(alignment.rules),
        id=alignment.id,
        version=alignment.version,
        confidence=alignment.given_confidence,
        provenance=alignment.provenance,
        signature=signature,
        unmapped=list(alignment.unmapped),
    )


def _convert(value: Any, kind: type[T], collector: Collector, pointer: str) -> T | None:
    if isinstance(value, dict):
        unknown = sorted(set(value) - set(kind.__struct_encode_fields__) - {"@context", "type"})
        if unknown:
            message = f"unknown members are left out: {', '.join(brief(name) for name in unknown[:5])}"
            collector.report(rules.BAD_ARTIFACT, message, RulePlace(pointer=pointer), warning=True)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        # The path is written in JavaScript's way: `.signals[...]`.
        member = path.lstrip(".").rstrip("`").partition("[")[0].partition(".")[0]
        rule = _MEMBERS.get(member, rules.BAD_ARTIFACT)
        where = f"{pointer}/{member}" if member else pointer
        given = value.get(member) if isinstance(value, dict) and member else None
        shown = f"; got {brief(given)}" if given is not None else ""
        collector.report(rule, f"{member or 'the document'}: {message}{shown}", RulePlace(pointer=where))
        return None
