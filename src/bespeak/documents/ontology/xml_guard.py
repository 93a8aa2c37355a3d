"""Check of RDF/XML before it is parsed: depth and entities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from xml.parsers import expat

from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.documents.ontology.limits import Limits
from bespeak.documents.ontology.rules import ENTITIES, MALFORMED, TOO_LARGE
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.span import Location

_LONGEST_ENTITY: Final = 256
_MOST_ENTITIES: Final = 256


def check_xml(data: bytes, file: str, limits: Limits) -> None:
    """Raise DocumentRefused for a document that is not well-formed, too deep, or expands entities without bound.

    The RDF parser is recursive and expands nested entities; this check, which does neither, runs before it.
    """
    parser = expat.ParserCreate("UTF-8", None)
    depth = entities = longest = 0

    def refuse(report: Callable[..., Diagnostic], message: str) -> None:
        raise DocumentRefused(report(message, _place(parser, file)))

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


def _place(parser: expat.XMLParserType, file: str) -> Location:
    return Location(file, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
