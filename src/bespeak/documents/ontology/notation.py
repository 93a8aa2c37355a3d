"""Notations of RDF documents: their names, endings and media types, and how to tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, Literal

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
    ".jsonld": "jsonld",
    ".json": "jsonld",
    ".nq": "nquads",
    ".nt": "nquads",
}


def notation_of(file: str, data: bytes) -> RdfNotation:
    """Return the notation of a document: by the ending of its file, else by its first characters.

    Files that end in .owl or .xml may hold RDF/XML or Turtle.
    """
    by_name = _ENDINGS.get(PurePath(file).suffix.lower())
    if by_name is not None:
        return by_name
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"<?xml", b"<!", b"<rdf:")):
        return "rdfxml"
    # A Turtle document may begin with a blank node: `[` alone tells nothing.
    return "jsonld" if start.startswith(b"{") or start.replace(b" ", b"")[:2] in (b"[{", b"[]", b"[\n") else "turtle"
