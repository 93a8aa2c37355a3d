"""I101-I110: rules for ontologies as documents."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

TOO_LARGE: Final = Rule("I101", "ontology-too-large", "MUST", "reading ontologies")
MALFORMED: Final = Rule("I102", "malformed-ontology", "MUST", "reading ontologies")
BAD_IRI: Final = Rule("I103", "ontology-iri", "MUST", "reading ontologies")
REMOTE_CONTEXT: Final = Rule("I104", "ontology-context-unknown", "MUST", "IoA 6.1")
BAD_CONTEXT: Final = Rule("I105", "ontology-context-refused", "MUST", "IoA 6.1")
IDENTITY: Final = Rule("I106", "ontology-identity", "SHOULD", "IoA 5.2")
VERSION: Final = Rule("I107", "ontology-version", "SHOULD", "IoA 5.3")
LEFT_OUT: Final = Rule("I108", "ontology-label-left-out", "SHOULD", "reading ontologies")
ENTITIES: Final = Rule("I109", "ontology-entities", "MUST", "reading ontologies")
BLANK_NODES: Final = Rule("I110", "ontology-blank-nodes", "MUST", "reading ontologies")
