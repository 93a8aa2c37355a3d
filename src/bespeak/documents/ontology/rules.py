"""I101-I110: rules for ontologies as documents."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

TOO_LARGE: Final = Rule(
    ("I101", "ontology-too-large", "MUST", "reading ontologies"),
    "An ontology stays within the limits for bytes, triples, characters and depth.",
)
MALFORMED: Final = Rule(
    ("I102", "malformed-ontology", "MUST", "reading ontologies"),
    "An ontology is well-formed Turtle, RDF/XML or JSON-LD.",
)
BAD_IRI: Final = Rule(
    ("I103", "ontology-iri", "MUST", "reading ontologies"),
    "An IRI is absolute, of at most 2048 characters, and without control characters, also escaped ones.",
)
REMOTE_CONTEXT: Final = Rule(
    ("I104", "ontology-context-unknown", "MUST", "IoA 6.1"),
    "A JSON-LD context is shipped or registered; none is fetched.",
)
BAD_CONTEXT: Final = Rule(
    ("I105", "ontology-context-refused", "MUST", "IoA 6.1"),
    "A JSON-LD context is small, and redefines neither keywords nor protected terms.",
)
IDENTITY: Final = Rule(("I106", "ontology-identity", "SHOULD", "IoA 5.2"), "A document declares exactly one ontology.")
VERSION: Final = Rule(
    ("I107", "ontology-version", "SHOULD", "IoA 5.3"), "An ontology has a version that compares with others."
)
LEFT_OUT: Final = Rule(
    ("I108", "ontology-label-left-out", "SHOULD", "reading ontologies"),
    "A term has a limited number of names, and each has a limited length.",
)
ENTITIES: Final = Rule(
    ("I109", "ontology-entities", "MUST", "reading ontologies"),
    "The entities of an RDF/XML document are short texts, declared in the document, without references.",
)
BLANK_NODES: Final = Rule(
    ("I110", "ontology-blank-nodes", "MUST", "reading ontologies"),
    "The blank nodes of a registered ontology can be told apart with bounded work.",
)
