"""Triples of a document as plain texts, parsed within limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.ontology.namespace import is_iri
from bespeak.documents.ontology.contexts import Contexts, inline_contexts
from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.documents.ontology.limits import Limits
from bespeak.documents.ontology.notation import RdfNotation
from bespeak.documents.ontology.rules import BAD_IRI, MALFORMED, TOO_LARGE
from bespeak.documents.ontology.xml_guard import check_xml
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.printable import printable
from bespeak.text.source.span import Location

if TYPE_CHECKING:
    from pyoxigraph import Quad

Triple = tuple[str, str, str, str | None]
"""Subject, predicate, object, and the language of a literal: empty for plain literals, None for resources. Blank nodes
begin with `_:`."""

_FORMATS: Final = {"turtle": "TURTLE", "rdfxml": "RDF_XML", "jsonld": "JSON_LD", "nquads": "N_QUADS"}


def parse_quads(data: bytes, notation: RdfNotation, file: str, contexts: Contexts, limits: Limits) -> Iterator[Quad]:
    """Yield the quads of a document; raise DocumentRefused at the first fault or limit."""
    import pyoxigraph  # noqa: PLC0415 - an extra

    if len(data) > limits.size:
        line = data.count(b"\n", 0, limits.size) + 1
        refuse_size(file, line, limits)
    if notation == "rdfxml":
        check_xml(data, file, limits)
    elif notation == "jsonld":
        data = inline_contexts(data, file, contexts, limits)
    elif data.count(b"<<") > limits.triple_terms:
        message = f"a document may have {limits.triple_terms} triple terms (<<)"
        raise DocumentRefused(TOO_LARGE.found(message, Location(file, 1, 1)))
    # Without a base, a relative IRI is a fault: its meaning would depend on where the file lies.
    parser = pyoxigraph.parse(data, getattr(pyoxigraph.RdfFormat, _FORMATS[notation]))
    try:
        yield from parser
    except SyntaxError as error:
        place = Location(file, error.lineno or 0, error.offset or 0)
        raise DocumentRefused(MALFORMED.found(f"this is not {notation}: {_reason(error)}", place)) from error
    except MemoryError as error:  # the parser's own limit for one term
        raise DocumentRefused(TOO_LARGE.found(printable(str(error))[:300], Location(file))) from error
    except (ValueError, OSError) as error:
        message = f"this is not {notation}: {printable(str(error))[:300]}"
        raise DocumentRefused(MALFORMED.found(message, Location(file))) from error


def read_triples(data: bytes, notation: RdfNotation, file: str, contexts: Contexts, limits: Limits) -> Iterator[Triple]:
    """Yield the triples of a document with checked IRIs; graphs of a dataset are read as one."""
    from pyoxigraph import BlankNode, Literal, NamedNode  # noqa: PLC0415 - an extra

    count = characters = 0
    good: set[str] = set()

    def name(node: Any) -> str | None:
        if type(node) is NamedNode:
            iri: str = node.value
            if iri not in good:
                if not is_iri(iri):
                    message = f"triple {count}: the IRI {brief(iri)} is relative, too long, or has control characters"
                    raise DocumentRefused(BAD_IRI.found(message, Location(file)))
                good.add(iri)
            return iri
        return f"_:{node.value}" if type(node) is BlankNode else None

    for quad in parse_quads(data, notation, file, contexts, limits):
        count += 1
        subject, predicate = name(quad.subject), name(quad.predicate)
        node: Any = quad.object
        language = (node.language or "") if type(node) is Literal else None
        value = node.value if language is not None else name(node)
        if subject is None or predicate is None or value is None:
            continue  # a triple about a triple
        characters += len(subject) + len(predicate) + len(value)
        if count > limits.triples or characters > limits.characters:
            most = f"{limits.triples} triples of {limits.characters} characters"
            message = f"an ontology may have {most}; more begin at {brief(subject)}"
            raise DocumentRefused(TOO_LARGE.found(message, Location(file)))
        yield subject, predicate, value, language


def refuse_size(file: str, line: int, limits: Limits) -> None:
    """Raise DocumentRefused for a document with too many bytes."""
    message = f"an ontology may have {limits.size} bytes; line {line} is beyond"
    raise DocumentRefused(TOO_LARGE.found(message, Location(file, line, 1)))


def _reason(error: SyntaxError) -> str:
    return printable(str(error.msg).removeprefix("Parser error at "))[:300]
