"""Artifacts in the Alignment API format: RDF/XML as the matching tools and campaigns of the field exchange it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from bespeak.contract.ontology.alignment import Alignment, MappingRule, Provenance, Relation
from bespeak.contract.ontology.namespace import RDF, XSD
from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.documents.alignment.collector import AlignmentDocument, Collector, Place, check_size
from bespeak.documents.alignment.rules import CONFIDENCE, MALFORMED, RELATION, TOO_LARGE
from bespeak.text.diagnostics.brief import brief

_NAMESPACE: Final = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
_SIGNS: Final[Mapping[Relation, str]] = {"equivalent": "=", "broader": "<", "narrower": ">", "related": "~"}
_RELATIONS: Final[Mapping[str, Relation]] = {
    **{sign: relation for relation, sign in _SIGNS.items()},
    **dict.fromkeys(("equivalence", "Equivalence"), "equivalent"),
    **dict.fromkeys(("subsumedBy", "SubsumedBy", "<="), "broader"),
    **dict.fromkeys(("subsumes", "Subsumes", ">="), "narrower"),
}
_DEEPEST: Final = 16
_LONGEST: Final = 4_096
"""Most characters of a text."""


def write_alignment_api(alignment: Alignment) -> bytes:
    """Write ontologies, rules with relation and confidence, and the tool; the format holds no more."""
    about = f" rdf:about={_attribute(alignment.id)}" if alignment.id else ""
    tool = alignment.provenance.tool if alignment.provenance else ""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<rdf:RDF xmlns="{_NAMESPACE}" xmlns:rdf="{RDF}" xmlns:xsd="{XSD}">',
        f"<Alignment{about}>",
        "<xml>yes</xml><level>0</level><type>**</type>",
        *([f"<method>{_text(tool)}</method>"] if tool else []),
        *(
            f"<onto{place}><Ontology rdf:about={_attribute(ref.id)}/></onto{place}>"
            for place, ref in enumerate((alignment.source, alignment.target), 1)
        ),
    ]
    for rule in alignment.rules:
        # A measure is mandatory: a rule without its own confidence has that of the artifact.
        measure = alignment.confidence_of(rule)
        lines.append(
            f"<map><Cell><entity1 rdf:resource={_attribute(rule.source)}/>"
            f"<entity2 rdf:resource={_attribute(rule.target)}/><relation>{escape(_SIGNS[rule.relation])}</relation>"
            f'<measure rdf:datatype="{XSD}float">{measure!r}</measure></Cell></map>'
        )
    return "\n".join([*lines, "</Alignment>", "</rdf:RDF>", ""]).encode(errors="replace")


def read_alignment_api(data: bytes, file: str) -> AlignmentDocument:
    """Read an artifact. Documents with entities or a document type are refused before anything is expanded."""
    refused = check_size(data, file)
    if refused is not None:
        return AlignmentDocument(None, [refused])
    reading = _Reading(file)
    return reading.run(data)


class _RefusedError(Exception):
    """The document is refused; the finding is with the collector."""


class _Reading:
    """One document, element by element: no tree is built."""

    def __init__(self, file: str) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._enter, self._leave
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.buffer_text = True
        self._collector = Collector(file)
        self._path: list[str] = []
        self._text = ""
        self._cell: dict[str, str] = {}
        self._head: dict[str, str] = {}
        self._line = 0

    def run(self, data: bytes) -> AlignmentDocument:
        try:
            self._parser.Parse(data, True)
        except _RefusedError:
            return self._collector.document(None)
        except expat.ExpatError as error:
            message = f"this is not XML: {expat.errors.messages[error.code]}"
            self._collector.report(MALFORMED, message, Place(error.lineno))
            return self._collector.document(None)
        except (ValueError, LookupError) as error:  # an encoding that is not known
            self._collector.report(MALFORMED, f"this is not XML: {error}", Place(1))
            return self._collector.document(None)
        if "Alignment" not in self._head:
            self._collector.report(MALFORMED, "the document has no element Alignment", Place(1))
        refs = [OntologyRef(self._collector.iri(self._ontology(side), f"onto{side}", Place(1)), "") for side in (1, 2)]
        tool = self._head.get("method", "")
        return self._collector.document(
            Alignment(
                source=refs[0],
                target=refs[1],
                rules=self._collector.rules,
                id=self._head.get("Alignment", ""),
                provenance=Provenance(tool=tool) if tool else None,
            )
        )

    def _ontology(self, side: int) -> str:
        # Old files have the location in onto1 and the IRI in uri1.
        return self._head.get(f"uri{side}") or self._head.get(f"onto{side}", "")

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
        cell, place, collector = self._cell, Place(self._line), self._collector
        source, target = (collector.iri(cell.get(name, ""), name, place) for name in ("entity1", "entity2"))
        relation = _RELATIONS.get(cell.get("relation", "="))
        if relation is None:
            collector.report(RELATION, f"relation {brief(cell['relation'])} is not one of = < > ~", place)
            return
        try:
            measure = float(cell["measure"]) if cell.get("measure") else None
        except ValueError:
            collector.report(CONFIDENCE, f"measure must be a number from 0 to 1; got {brief(cell['measure'])}", place)
            return
        collector.add(MappingRule(source=source, target=target, relation=relation, confidence=measure), place)
        if collector.is_full:
            raise _RefusedError

    def _refuse_doctype(self, *_: object) -> None:
        self._collector.report(MALFORMED, "a document type is not allowed", Place(self._parser.CurrentLineNumber))
        raise _RefusedError

    def _refuse(self, message: str) -> None:
        self._collector.report(TOO_LARGE, message, Place(self._parser.CurrentLineNumber))
        raise _RefusedError


def _attribute(text: str) -> str:
    return quoteattr(_text_characters(text))


def _text(text: str) -> str:
    return escape(_text_characters(text))


def _text_characters(text: str) -> str:
    """Leave out characters that XML cannot hold."""
    return "".join(one for one in text if one in "\t\n\r" or (one >= " " and one not in "\ufffe\uffff"))
