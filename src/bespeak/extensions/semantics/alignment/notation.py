"""Notations of alignment artifacts: the draft's JSON, SSSOM TSV, and RDF/XML of the Alignment API."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import quote
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import msgspec

from bespeak.contract.core_ontology import OWL, RDF, SKOS, XSD, is_iri
from bespeak.extensions.semantics.alignment.draft_json import (
    AlignmentDocument,
    Collector,
    RulePlace,
    check_size,
    read_json,
    write_json,
)
from bespeak.extensions.semantics.alignment.policy import (
    Alignment,
    Justification,
    MappingRule,
    Provenance,
    Relation,
    Unmapped,
)
from bespeak.extensions.semantics.alignment.values import ValueMapping
from bespeak.extensions.semantics.rules import ALIGNMENT_TOO_LARGE, BAD_ARTIFACT, CONFIDENCE, RELATION
from bespeak.extensions.semantics.terms import OntologyRef
from bespeak.text.diagnostics.diagnostic import Rule, brief
from bespeak.text.source.tree import SyntaxFault
from bespeak.text.source.yaml_tree import parse_yaml

_NAMESPACE: Final = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
_SIGNS: Final[Mapping[Relation, str]] = {"equivalent": "=", "broader": "<", "narrower": ">", "related": "~"}
_RELATIONS: Final[Mapping[str, Relation]] = {
    **{sign: relation for relation, sign in _SIGNS.items()},
    **dict.fromkeys(("equivalence", "Equivalence"), "equivalent"),
    **dict.fromkeys(("subsumedBy", "SubsumedBy", "<="), "broader"),
    **dict.fromkeys(("subsumes", "Subsumes", ">="), "narrower"),
}
_DEEPEST: Final = 16
_LONGEST: Final = 4_096  # most characters of a text


def write_alignment_api(alignment: Alignment) -> bytes:
    """Write ontologies, rules with relation and confidence, and the tool; the format holds no more."""
    about = f" rdf:about={_attribute(alignment.id)}" if alignment.id else ""
    tool = alignment.provenance.tool if alignment.provenance else ""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<rdf:RDF xmlns="{_NAMESPACE}" xmlns:rdf="{RDF}" xmlns:xsd="{XSD}">',
        f"<Alignment{about}>",
        "<xml>yes</xml><level>0</level><type>**</type>",
        *([f"<method>{escape(_text_characters(tool))}</method>"] if tool else []),
        *(
            f"<onto{place}><Ontology rdf:about={_attribute(ref.id)}/></onto{place}>"
            for place, ref in enumerate((alignment.source, alignment.target), 1)
        ),
        *(
            f"<map><Cell><entity1 rdf:resource={_attribute(rule.source)}/>"
            f"<entity2 rdf:resource={_attribute(rule.target)}/><relation>{escape(_SIGNS[rule.relation])}</relation>"
            # A measure is mandatory: a rule without its own confidence has that of the artifact.
            f'<measure rdf:datatype="{XSD}float">{alignment.confidence_of(rule)!r}</measure></Cell></map>'
            for rule in alignment.rules
        ),
        *("</Alignment>", "</rdf:RDF>", ""),
    ]
    return "\n".join(lines).encode(errors="replace")


def read_alignment_api(data: bytes, file: str) -> AlignmentDocument:
    """Read an artifact. Documents with entities or a document type are refused before anything is expanded."""
    refused = check_size(data, file)
    return _ApiDocument(file).run(data) if refused is None else AlignmentDocument(None, [refused])


class _StoppedError(Exception):
    """The document is refused; the finding is with the collector."""


class _ApiDocument:
    """One document, element by element: no tree is built."""

    def __init__(self, file: str) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._enter, self._leave
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = lambda *_: self._refuse("a document type is not allowed", BAD_ARTIFACT)
        self._parser.buffer_text = True
        self._collector = Collector(file)
        self._path: list[str] = []
        self._text = ""
        self._cell: dict[str, str] = {}
        self._head: dict[str, str] = {}
        self._line = 0

    def run(self, data: bytes) -> AlignmentDocument:
        collector, head, refs = self._collector, self._head, []
        try:
            self._parser.Parse(data, True)
        except (_StoppedError, ValueError, LookupError, expat.ExpatError) as error:
            if isinstance(error, expat.ExpatError):
                message = f"this is not XML: {expat.errors.messages[error.code]}"
                collector.report(BAD_ARTIFACT, message, RulePlace(error.lineno))
            elif not isinstance(error, _StoppedError):  # an encoding that is not known
                collector.report(BAD_ARTIFACT, f"this is not XML: {error}", RulePlace(1))
            return collector.document(None)
        if "Alignment" not in head:
            collector.report(BAD_ARTIFACT, "the document has no element Alignment", RulePlace(1))
        for side in ("onto1", "onto2"):
            # Old files have the location in onto1 and the IRI in uri1.
            iri = head.get(side.replace("onto", "uri")) or head.get(side) or self._common_base(side[-1])
            refs.append(OntologyRef(collector.iri(iri, side, RulePlace(1)), ""))
        tool, id_ = head.get("method", ""), head.get("Alignment", "")
        origin = Provenance(tool=tool) if tool else None
        source, target = refs
        found = Alignment(source=source, target=target, rules=collector.rules, id=id_, provenance=origin)
        return collector.document(found)

    def _common_base(self, side: str) -> str:
        """Return what the IRIs of one side begin with: reference files of benchmarks may not name their ontologies."""
        iris = (rule.source if side == "1" else rule.target for rule in self._collector.rules)
        bases = {match[1].rstrip("#/") for iri in iris if (match := _SPLIT.fullmatch(iri))}
        return bases.pop() if len(bases) == 1 else ""

    def _enter(self, name: str, attributes: dict[str, Any]) -> None:
        local = name.rpartition(" ")[2]
        self._path.append(local)
        self._text = ""
        if len(self._path) > _DEEPEST:
            self._refuse(f"elements may be nested {_DEEPEST} deep")
        resource = attributes.get(f"{RDF} resource") or attributes.get(f"{RDF} about") or ""
        if local == "Cell":
            self._cell, self._line = {}, self._parser.CurrentLineNumber
        elif local in ("entity1", "entity2"):
            self._cell[local] = resource
        elif local == "Alignment":
            self._head[local] = resource
        elif local == "Ontology" and len(self._path) > 1:
            self._head[self._path[-2]] = resource
        elif local in ("onto1", "onto2") and resource:
            self._head[local] = resource

    def _leave(self, name: str) -> None:
        local, text = self._path.pop(), self._text.strip()
        self._text = ""
        if local in ("relation", "measure"):
            self._cell[local] = text
        elif local in ("uri1", "uri2", "onto1", "onto2", "method") and text:
            self._head[local] = text
        elif local == "Cell":
            self._add()

    def _characters(self, text: str) -> None:
        self._text += text
        if len(self._text) > _LONGEST:
            self._refuse(f"a text may have {_LONGEST} characters")

    def _add(self) -> None:
        cell, place, collector = self._cell, RulePlace(self._line), self._collector
        source, target = (collector.iri(cell.get(name, ""), name, place) for name in ("entity1", "entity2"))
        relation = _RELATIONS.get(cell.get("relation", "="))
        if relation is None:
            collector.report(RELATION, f"relation {brief(cell['relation'])} is not one of = < > ~", place)
            return
        measure = _number(cell, "measure", collector, place)
        if measure is not None or not cell.get("measure"):
            collector.add(MappingRule(source=source, target=target, relation=relation, confidence=measure), place)
        if collector.is_full:
            raise _StoppedError

    def _refuse(self, message: str, rule: Rule = ALIGNMENT_TOO_LARGE) -> None:
        self._collector.report(rule, message, RulePlace(self._parser.CurrentLineNumber))
        raise _StoppedError


def _attribute(text: str) -> str:
    return quoteattr(_text_characters(text))


def _text_characters(text: str) -> str:
    """Leave out characters that XML cannot hold."""
    return "".join(one for one in text if one in "\t\n\r" or (one >= " " and one not in "\ufffe\uffff"))


_SEMAPV: Final = "https://w3id.org/semapv/vocab/"
_PREDICATES: Final[Mapping[Relation, str]] = {
    "equivalent": "skos:exactMatch",
    "broader": "skos:broadMatch",
    "narrower": "skos:narrowMatch",
    "related": "skos:relatedMatch",
}
_SSSOM_RELATIONS: Final[Mapping[str, Relation]] = {
    **{name.replace("skos:", SKOS): relation for relation, name in _PREDICATES.items()},
    **dict.fromkeys((f"{OWL}equivalentClass", f"{OWL}equivalentProperty", f"{OWL}sameAs"), "equivalent"),
    f"{SKOS}closeMatch": "related",
}
_JUSTIFICATIONS: Final[Mapping[Justification | None, str]] = {
    "lexical": "LexicalMatching",
    "structural": "StructuralMatching",
    "behavioral": "BackgroundKnowledgeBasedMatching",
    "embedding": "SemanticSimilarityThresholdMatching",
    "composite": "CompositeMatching",
    "manual": "ManualMappingCuration",
    "review": "MappingReview",
    None: "UnspecifiedMatching",
}
_READ: Final = {**{name: key for key, name in _JUSTIFICATIONS.items()}, "LexicalSimilarityThresholdMatching": "lexical"}
_COLUMNS: Final = (
    *("subject_id", "predicate_id", "object_id", "mapping_justification", "confidence", "similarity_score"),
    *("author_label", "reviewer_label", "mapping_tool", "mapping_tool_version", "mapping_source", "mapping_date"),
    "other",
)
_SSSOM: Final = "https://w3id.org/sssom/"
_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
_NO_TERM: Final = f"{_SSSOM}NoTermFound"  # object of a term without a counterpart
_SPLIT: Final = re.compile(r"(.*[#/:])([^#/:]+)", re.DOTALL)
_PREFIX: Final = re.compile(r"(?<=[/:])[A-Za-z][A-Za-z0-9_.-]{0,30}$")
_LICENSE: Final = "https://w3id.org/sssom/license/unspecified"  # a mapping set must name one
_UNNAMED: Final = "urn:alignment:unnamed"  # id of a mapping set without one, which SSSOM requires
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HEADER_LINES: Final = 20_000


class _Other(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What SSSOM has no column for."""

    signals: dict[str, float] = {}
    override: bool = False
    created: str = ""
    subject: str = ""  # IRI with characters that a URI cannot have
    object: str = ""
    source: str = ""  # source of a provenance that is not a URI
    provenance: bool = False  # True for a provenance without any content
    values: ValueMapping | None = None

    def text(self) -> str:
        found = msgspec.json.encode(self).decode()
        return found if found != "{}" else ""


def write_sssom(alignment: Alignment) -> bytes:
    ends = [(_uri(rule.source), _uri(rule.target)) for rule in alignment.rules]
    ends += [(_uri(one.source), _NO_TERM) for one in alignment.unmapped]
    split = (_SPLIT.fullmatch(iri) for pair in ends for iri in pair if iri != _NO_TERM)
    prefixes = _name_prefixes(sorted({match[1] for match in split if match})) | {_SSSOM: "sssom"}
    rows = io.StringIO()
    writer = csv.DictWriter(rows, _COLUMNS, "", delimiter="\t", lineterminator="\n")
    writer.writeheader()
    unmapped = [
        MappingRule(source=one.source, target=_NO_TERM, justification="manual", confirmed_by=one.confirmed_by)
        for one in alignment.unmapped
    ]
    for rule, (subject, object_) in zip((*alignment.rules, *unmapped), ends, strict=True):
        row = {
            "subject_id": _shorten(subject, prefixes),
            "predicate_id": _PREDICATES[rule.relation],
            "object_id": _shorten(object_, prefixes),
            "mapping_justification": f"semapv:{_JUSTIFICATIONS[rule.justification]}",
            "confidence": "" if rule.confidence is None else repr(rule.confidence),
            "similarity_score": "" if rule.score is None else repr(rule.score),
            "reviewer_label": rule.confirmed_by,
        }
        writer.writerow({name: text.replace("|", r"\|") for name, text in row.items()} | _origin_columns(rule))
    header = "".join(f"#{line}\n" for line in _header(alignment, prefixes))
    return (header + rows.getvalue()).encode(errors="replace")


def _origin_columns(rule: MappingRule) -> dict[str, str]:
    origin = rule.provenance or Provenance()
    is_date, has_address = _DATE.fullmatch(origin.created) is not None, _is_uri(origin.source)
    other = _Other(
        signals=dict(rule.signals),
        override=rule.override,
        created="" if is_date else origin.created,
        subject="" if rule.source.isascii() else rule.source,
        object="" if rule.target.isascii() else rule.target,
        source="" if has_address else origin.source,
        provenance=rule.provenance == Provenance(),
        values=rule.values,
    )
    return {
        "author_label": origin.author.replace("|", r"\|"),  # it separates columns with several values
        "mapping_tool": origin.tool,
        "mapping_tool_version": origin.tool_version,
        "mapping_source": origin.source if has_address else "",
        "mapping_date": origin.created if is_date else "",
        "other": other.text(),
    }


def _is_uri(text: str) -> bool:
    return text.isascii() and is_iri(text)


def _uri(iri: str) -> str:
    """Return the URI of an IRI (RFC 3987 3.1)."""
    return iri if iri.isascii() else quote(iri, safe=_ASCII)


def _name_prefixes(spaces: Iterable[str]) -> dict[str, str]:
    """Return a prefix for each namespace: its own end, such as `clinical`, unless that is taken or not a name."""
    found: dict[str, str] = {}
    for place, space in enumerate(spaces, 1):
        name = next(iter(_PREFIX.findall(space.rstrip("#/:"))), f"n{place}")
        found[space] = name if name not in {"semapv", "skos", "sssom", *found.values()} else f"{name}{place}"
    return found


def read_sssom(data: bytes, file: str) -> AlignmentDocument:
    """Read an artifact. A negated mapping (`predicate_modifier` Not) is left out, with a warning."""
    refused = check_size(data, file)
    if refused is not None:
        return AlignmentDocument(None, [refused])
    lines = [f"{line}\n" for line in data.decode(errors="replace").split("\n")]
    count = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    collector, unmapped = Collector(file), list[Unmapped]()
    header = _read_header("".join(line[1:] for line in lines[:count]), min(count, _HEADER_LINES), collector)
    rows = csv.DictReader(io.StringIO("".join(lines[count:]), newline=""), delimiter="\t")
    try:
        absent = {"subject_id", "predicate_id", "object_id"} - set(rows.fieldnames or ())
        if absent:
            collector.report(BAD_ARTIFACT, f"the columns {', '.join(sorted(absent))} are missing", RulePlace(count + 1))
        for row in rows if not absent else ():
            place = RulePlace(count + rows.line_num)
            if collector.is_full:
                break
            rule = _rule({name: text for name, text in row.items() if isinstance(text, str)}, collector, place)
            if rule is not None and rule.target == _NO_TERM:
                unmapped.append(Unmapped(source=rule.source, confirmed_by=rule.confirmed_by))
            elif rule is not None:
                collector.add(rule, place)
    except csv.Error as error:
        collector.report(BAD_ARTIFACT, f"the table cannot be read: {error}", RulePlace(count + rows.line_num))
    found = _alignment(header, collector)
    return collector.document(msgspec.structs.replace(found, unmapped=tuple(unmapped)))


def _shorten(iri: str, prefixes: Mapping[str, str]) -> str:
    match = _SPLIT.fullmatch(iri)
    return f"{prefixes[match[1]]}:{match[2]}" if match else iri


def _header(alignment: Alignment, prefixes: Mapping[str, str]) -> Iterator[str]:
    origin = alignment.provenance or Provenance()
    has_address = _is_uri(origin.source)
    other = _Other(created=origin.created, source="" if has_address else origin.source)
    slots: dict[str, Any] = {
        "mapping_set_id": alignment.id or _UNNAMED,
        "license": _LICENSE,
        "mapping_set_version": alignment.version,
        "mapping_set_confidence": alignment.given_confidence,
        "subject_source": alignment.source.id,
        "subject_source_version": alignment.source.version,
        "object_source": alignment.target.id,
        "object_source_version": alignment.target.version,
        "creator_label": [origin.author] if origin.author else None,
        "mapping_tool": origin.tool,
        "mapping_tool_version": origin.tool_version,
        "mapping_set_source": [origin.source] if has_address else None,
        "publication_date": origin.created[:10] if _DATE.match(origin.created) else "",
        "other": other.text(),
    }
    yield from (f"{name}: {_yaml(value)}" for name, value in slots.items() if value not in ("", None))
    yield "curie_map:"
    for prefix, iri in (("semapv", _SEMAPV), ("skos", SKOS), *((name, space) for space, name in prefixes.items())):
        yield f"  {prefix}: {_yaml(iri)}"


def _yaml(value: str | float | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_yaml(one) for one in value)}]"
    if not isinstance(value, str):
        return repr(value)
    plain = (one if " " <= one <= "~" and one not in '"\\' else f"\\U{ord(one):08x}" for one in value)
    return f'"{"".join(plain)}"'


def _read_header(text: str, count: int, collector: Collector) -> dict[str, Any]:
    tree = parse_yaml(text, "header") if text.strip() and count else None
    header: dict[str, Any] = {}
    if isinstance(tree, SyntaxFault):
        collector.report(BAD_ARTIFACT, f"the header is not YAML: {tree.message}", RulePlace(tree.location.line))
    elif tree is not None and isinstance(tree.data, dict):
        header = tree.data
    known = prefixes if isinstance(prefixes := header.get("curie_map"), dict) else {}
    collector.prefixes |= {"semapv": _SEMAPV, "skos": SKOS, "owl": OWL, "sssom": _SSSOM}
    collector.prefixes |= {str(name): iri for name, iri in known.items() if isinstance(iri, str)}
    return header


def _alignment(header: Mapping[str, Any], collector: Collector) -> Alignment:
    def text(name: str) -> str:
        value = header.get(name)
        value = value[0] if isinstance(value, list) and value else value
        return str(value) if isinstance(value, str | int | float) else ""

    source, target = (
        OntologyRef(collector.iri(text(name), name, RulePlace(1)), text(f"{name}_version"))
        for name in ("subject_source", "object_source")
    )
    confidence, other = header.get("mapping_set_confidence"), _decode_other(text("other"))
    provenance = Provenance(
        author=text("creator_label"),
        tool=text("mapping_tool"),
        tool_version=text("mapping_tool_version"),
        source=other.source or text("mapping_set_source"),
        created=other.created or text("publication_date"),
    )
    return Alignment(
        source=source,
        target=target,
        rules=collector.rules,
        id=text("mapping_set_id").replace(_UNNAMED, ""),
        version=text("mapping_set_version"),
        given_confidence=float(confidence) if isinstance(confidence, int | float) else None,
        provenance=provenance if provenance != Provenance() else None,
    )


def _rule(row: Mapping[str, str], collector: Collector, place: RulePlace) -> MappingRule | None:
    if row.get("predicate_modifier"):
        collector.report(RELATION, "a negated mapping is left out", place, warning=True)
        return None
    source, target, predicate = (
        collector.iri(row.get(name, ""), name, place) for name in ("subject_id", "object_id", "predicate_id")
    )
    other = _decode_other(row.get("other", ""))
    source, target = other.subject or source, other.object or target
    relation = _SSSOM_RELATIONS.get(predicate)
    if relation is None:
        collector.report(RELATION, f"predicate_id {brief(row.get('predicate_id', ''))} is not a known relation", place)
        return None
    why = collector.prefixes.get("semapv", _SEMAPV) + row.get("mapping_justification", "").partition(":")[2]
    provenance = Provenance(
        author=row.get("author_label", "").replace(r"\|", "|"),
        tool=row.get("mapping_tool", ""),
        tool_version=row.get("mapping_tool_version", ""),
        source=other.source or row.get("mapping_source", ""),
        created=other.created or row.get("mapping_date", ""),
    )
    justification: Any = _READ.get(why.removeprefix(_SEMAPV))
    return MappingRule(
        source=source,
        target=target,
        relation=relation,
        confidence=_number(row, "confidence", collector, place),
        score=_number(row, "similarity_score", collector, place),
        justification=justification,
        signals=other.signals,
        override=other.override,
        values=other.values,
        confirmed_by=row.get("reviewer_label", "").replace(r"\|", "|"),
        provenance=provenance if provenance != Provenance() or other.provenance else None,
    )


def _decode_other(text: str) -> _Other:
    try:
        return msgspec.json.decode(text, type=_Other)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):  # what others have written there is theirs
        return _Other()


def _number(row: Mapping[str, str], name: str, collector: Collector, place: RulePlace) -> float | None:
    text = row.get(name, "").strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        collector.report(CONFIDENCE, f"{name} must be a number from 0 to 1; got {brief(text)}", place)
        return None


AlignmentNotation = Literal["json", "sssom", "alignment"]

MEDIA_TYPES: Final[Mapping[str, AlignmentNotation]] = {
    "application/json": "json",
    "text/tab-separated-values": "sssom",
    "application/rdf+xml": "alignment",
}
_READERS: Final[Mapping[AlignmentNotation, Callable[[bytes, str], AlignmentDocument]]] = {
    "json": read_json,
    "sssom": read_sssom,
    "alignment": read_alignment_api,
}


def alignment_notation(data: bytes) -> AlignmentNotation:
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"{": "json", b"<": "alignment"}.get(start, "sssom")  # type: ignore[return-value]


def is_alignment(data: bytes) -> bool:
    """Return True for a document that looks like an artifact, not like an ontology."""
    notation = alignment_notation(data)
    sign = {"json": b'"mappingRules"', "alignment": b"/heterogeneity/alignment", "sssom": b"subject_id\t"}[notation]
    return sign in (data if notation == "json" else data[: 256 * 1024])


def read_alignment(data: bytes, file: str, notation: AlignmentNotation | None = None) -> AlignmentDocument:
    """Read an artifact in any notation; an artifact with errors is refused as a whole."""
    return _READERS[notation or alignment_notation(data)](data, file)


def write_alignment(alignment: Alignment, notation: AlignmentNotation, signature: str = "") -> bytes:
    """Write an artifact. Only the JSON of the draft carries the signature and everything else."""
    if notation == "json":
        return write_json(alignment, signature)
    return write_sssom(alignment) if notation == "sssom" else write_alignment_api(alignment)
