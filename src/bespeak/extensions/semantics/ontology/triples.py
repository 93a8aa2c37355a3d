"""Triples of an RDF document in Turtle, RDF/XML, JSON-LD or N-Quads, parsed within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal
from xml.parsers import expat

from bespeak.contract.core_ontology import is_iri
from bespeak.extensions.semantics.ontology.contexts import Contexts, DocumentRefused, OntologyLimits, inline_contexts
from bespeak.extensions.semantics.rules import BAD_IRI, ENTITIES, MALFORMED, TOO_LARGE
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, printable
from bespeak.text.source.tree import Location

if TYPE_CHECKING:
    from pyoxigraph import Quad

RdfNotation = Literal["turtle", "rdfxml", "jsonld", "nquads"]

MEDIA_TYPES: Final[Mapping[str, RdfNotation]] = {
    "text/turtle": "turtle",
    "application/rdf+xml": "rdfxml",
    "application/ld+json": "jsonld",
    "application/n-quads": "nquads",
}
_ENDINGS: Final[Mapping[str, RdfNotation]] = {
    ".ttl": "turtle",
    ".rdf": "rdfxml",
    **dict.fromkeys((".jsonld", ".json"), "jsonld"),
    **dict.fromkeys((".nq", ".nt"), "nquads"),
}


def notation_of(file: str, data: bytes) -> RdfNotation:
    """Return the notation by the ending of the file, else by its first characters: .owl and .xml are ambiguous."""
    by_name = _ENDINGS.get(PurePath(file).suffix.lower())
    if by_name is not None:
        return by_name
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"<?xml", b"<!", b"<rdf:")):
        return "rdfxml"
    # A Turtle document may begin with a blank node: `[` alone tells nothing.
    return "jsonld" if start.startswith(b"{") or start.replace(b" ", b"")[:2] in (b"[{", b"[]", b"[\n") else "turtle"


_LONGEST_ENTITY: Final = 256
_MOST_ENTITIES: Final = 256


def check_xml(data: bytes, file: str, limits: OntologyLimits) -> None:
    """Raise DocumentRefused for a document that is not well-formed, too deep, or expands entities without bound.

    The RDF parser is recursive and expands nested entities; this check, which does neither, runs before it.
    """
    parser = expat.ParserCreate("UTF-8", None)
    depth = entities = longest = 0

    def refuse(report: Callable[..., Diagnostic], message: str) -> None:
        place = Location(file, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
        raise DocumentRefused(report(message, place))

    def enter(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limits.depth:
            refuse(TOO_LARGE.found, f"elements may be nested {limits.depth} deep; <{name[:80]}> is deeper")
        if len(attributes) > limits.attributes:
            refuse(TOO_LARGE.found, f"<{name[:80]}> may have {limits.attributes} attributes; got {len(attributes)}")

    def leave(name: str) -> None:
        nonlocal depth
        depth -= 1

    def declare(name: str, parameter: bool, value: str | None, *rest: str | None) -> None:
        nonlocal entities, longest
        entities += 1
        if value is None or parameter or "&" in value or "<" in value:
            refuse(ENTITIES.found, f"the entity {name[:80]!r} must be a plain text inside the document")
        elif len(value) > _LONGEST_ENTITY or entities > _MOST_ENTITIES:
            refuse(ENTITIES.found, f"there may be {_MOST_ENTITIES} entities of {_LONGEST_ENTITY} characters")
        else:
            longest = max(longest, len(value))

    parser.StartElementHandler, parser.EndElementHandler = enter, leave
    parser.EntityDeclHandler = declare
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        place = Location(file, error.lineno, error.offset + 1)
        raise DocumentRefused(MALFORMED.found(f"this is not XML: {reason}", place)) from error
    if data.count(b"&") * longest > limits.characters:
        refuse(ENTITIES.found, f"the entities expand to more than {limits.characters} characters")


Triple = tuple[str, str, str, str | None]
"""Subject, predicate, object, and the language of a literal, None for resources. Blank nodes begin with `_:`."""
_FORMATS: Final = {"turtle": "TURTLE", "rdfxml": "RDF_XML", "jsonld": "JSON_LD", "nquads": "N_QUADS"}


def parse_quads(
    data: bytes, notation: RdfNotation, file: str, contexts: Contexts, limits: OntologyLimits
) -> Iterator[Quad]:
    """Yield the quads of a document; raise DocumentRefused at the first fault or limit."""
    import pyoxigraph  # noqa: PLC0415 - an extra

    if len(data) > limits.size:
        refuse_size(file, data.count(b"\n", 0, limits.size) + 1, limits)
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
        reason = printable(str(error.msg).removeprefix("Parser error at "))[:300]
        raise DocumentRefused(MALFORMED.found(f"this is not {notation}: {reason}", place)) from error
    except MemoryError as error:  # the parser's own limit for one term
        raise DocumentRefused(TOO_LARGE.found(printable(str(error))[:300], Location(file))) from error
    except (ValueError, OSError) as error:
        message = f"this is not {notation}: {printable(str(error))[:300]}"
        raise DocumentRefused(MALFORMED.found(message, Location(file))) from error


def read_triples(
    data: bytes, notation: RdfNotation, file: str, contexts: Contexts, limits: OntologyLimits
) -> Iterator[Triple]:
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


def refuse_size(file: str, line: int, limits: OntologyLimits) -> None:
    message = f"an ontology may have {limits.size} bytes; line {line} is beyond"
    raise DocumentRefused(TOO_LARGE.found(message, Location(file, line, 1)))
