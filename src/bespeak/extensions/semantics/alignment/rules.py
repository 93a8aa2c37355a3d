"""I301-I310: rules for alignment artifacts."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

TOO_LARGE: Final = Rule("I301", "alignment-too-large", "MUST", "reading alignments")
MALFORMED: Final = Rule("I302", "malformed-alignment", "MUST", "IoA 7.2")
BAD_IRI: Final = Rule("I303", "alignment-iri", "MUST", "reading alignments")
RELATION: Final = Rule("I304", "alignment-relation", "MUST", "reading alignments")
CONFIDENCE: Final = Rule("I305", "alignment-confidence", "MUST", "IoA 7.2")
CONFLICT: Final = Rule("I306", "alignment-conflict", "MUST", "reading alignments")
UNKNOWN_TERM: Final = Rule("I307", "alignment-unknown-term", "MUST", "IoA 13")
OTHER_ONTOLOGY: Final = Rule("I308", "alignment-other-ontology", "MUST", "IoA 7.2")
DOWNGRADE: Final = Rule("I309", "alignment-downgrade", "MUST", "IoA 13")
SIGNATURE: Final = Rule("I310", "alignment-signature", "MUST", "IoA 13")
