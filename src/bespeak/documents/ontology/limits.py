"""Bounds of the work that a document of a stranger can cause."""

from __future__ import annotations

from typing import Final

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Most of everything in one ontology. Time is bounded by the work: bytes, triples and characters."""

    size: int = 32 * 1024 * 1024
    """Bytes of the document."""
    triples: int = 250_000
    characters: int = 128 * 1024 * 1024
    """Characters of all terms together: prefixes and entities make short documents long."""
    depth: int = 64
    """Nesting of elements, objects and lists: parsers are recursive."""
    attributes: int = 256
    """Attributes of an element, with its namespaces: the parser compares each with all others."""
    triple_terms: int = 256
    """Occurrences of `<<`, which nests triples in triples."""
    label: int = 1_000
    """Characters of a label or a comment."""
    labels: int = 100
    """Labels, synonyms or other values of one property of a term."""
    contexts: int = 32
    """JSON-LD contexts in one document."""
    context_terms: int = 2_000
    """Terms of all inline contexts together."""


LIMITS: Final = Limits()
