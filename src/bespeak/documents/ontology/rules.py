"""I101-I110: rules for ontologies as documents."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

TOO_LARGE: Final = Rule(
    ("I101", "ontology-too-large", "MUST", "reading ontologies"),
    "An ontology stays within the limits for bytes, triples, characters and depth.",
    why="An ontology without bounds could exhaust the memory of its reader. Split it, or raise the limit.",
)
MALFORMED: Final = Rule(
    ("I102", "malformed-ontology", "MUST", "reading ontologies"),
    "An ontology is well-formed Turtle, RDF/XML or JSON-LD.",
    why="A document that cannot be parsed has no meaning. Correct it at the reported place.",
)
BAD_IRI: Final = Rule(
    ("I103", "ontology-iri", "MUST", "reading ontologies"),
    "An IRI is absolute, of at most 2048 characters, and without control characters, also escaped ones.",
    why="IRIs are compared, logged and sent on: a hidden character makes two different ones look the same. Correct it.",
)
REMOTE_CONTEXT: Final = Rule(
    ("I104", "ontology-context-unknown", "MUST", "IoA 6.1"),
    "A JSON-LD context is shipped or registered; none is fetched.",
    why="The meaning of a document must not depend on an address. Write the context inline, or register it.",
)
BAD_CONTEXT: Final = Rule(
    ("I105", "ontology-context-refused", "MUST", "IoA 6.1"),
    "A JSON-LD context is small, and redefines neither keywords nor protected terms.",
    why="Contexts decide what every name means, and large or nested ones make each node expensive. Simplify it.",
)
IDENTITY: Final = Rule(
    ("I106", "ontology-identity", "SHOULD", "IoA 5.2"),
    "A document declares exactly one ontology.",
    why="Profiles name an ontology by its IRI. Declare one owl:Ontology, or give the id when you load it.",
)
VERSION: Final = Rule(
    ("I107", "ontology-version", "SHOULD", "IoA 5.3"),
    "An ontology has a version that compares with others.",
    why="Without it, nobody can tell a newer meaning from an older one. Write numbers with points, or a date.",
)
LEFT_OUT: Final = Rule(
    ("I108", "ontology-label-left-out", "SHOULD", "reading ontologies"),
    "A term has a limited number of names, and each has a limited length.",
    why="The names beyond the limit are left out, and the term is not found by them. Shorten or remove them.",
)
ENTITIES: Final = Rule(
    ("I109", "ontology-entities", "MUST", "reading ontologies"),
    "The entities of an RDF/XML document are short texts, declared in the document, without references.",
    why="Nested entities grow exponentially, and external ones read files. Write the values in full.",
)
BLANK_NODES: Final = Rule(
    ("I110", "ontology-blank-nodes", "MUST", "reading ontologies"),
    "The blank nodes of a registered ontology can be told apart with bounded work.",
    why="The content hash needs canonical names for them, which can take exponential time. Name some of them by IRIs.",
)
