"""I301-I310: rules for alignment artifacts."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

TOO_LARGE: Final = Rule(
    ("I301", "alignment-too-large", "MUST", "reading alignments"),
    "An alignment stays within the limits for bytes, rules and depth.",
)
MALFORMED: Final = Rule(
    ("I302", "malformed-alignment", "MUST", "IoA 7.2"),
    "An alignment is a well-formed document with a source ontology, a target ontology and mapping rules.",
)
BAD_IRI: Final = Rule(
    ("I303", "alignment-iri", "MUST", "reading alignments"),
    "Terms and ontologies are named by absolute IRIs, or by prefixes that the document declares.",
)
RELATION: Final = Rule(
    ("I304", "alignment-relation", "MUST", "reading alignments"),
    "The relation of a mapping is equivalent, broader, narrower or related.",
)
CONFIDENCE: Final = Rule(
    ("I305", "alignment-confidence", "MUST", "IoA 7.2"), "Confidences and scores are numbers from 0 to 1."
)
CONFLICT: Final = Rule(("I306", "alignment-conflict", "MUST", "reading alignments"), "Two terms have one mapping rule.")
UNKNOWN_TERM: Final = Rule(
    ("I307", "alignment-unknown-term", "MUST", "IoA 13"),
    "Mapping rules lead from a term of the source ontology to a term of the target ontology.",
)
OTHER_ONTOLOGY: Final = Rule(
    ("I308", "alignment-other-ontology", "MUST", "IoA 7.2"),
    "An artifact is used for the exact ontologies and versions that it names.",
)
DOWNGRADE: Final = Rule(
    ("I309", "alignment-downgrade", "MUST", "IoA 13"),
    "An artifact is newer than the one it replaces, and its signer is trusted at least as much.",
)
SIGNATURE: Final = Rule(
    ("I310", "alignment-signature", "MUST", "IoA 13"),
    "The signature of an artifact is by a trusted key and for exactly this content.",
)
