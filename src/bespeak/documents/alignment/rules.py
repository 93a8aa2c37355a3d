"""I301-I310: rules for alignment artifacts."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

TOO_LARGE: Final = Rule(
    ("I301", "alignment-too-large", "MUST", "reading alignments"),
    "An alignment stays within the limits for bytes, rules and depth.",
    why="An artifact without bounds could exhaust the memory of its reader. Split it by parts of the ontologies.",
)
MALFORMED: Final = Rule(
    ("I302", "malformed-alignment", "MUST", "IoA 7.2"),
    "An alignment is a well-formed document with a source ontology, a target ontology and mapping rules.",
    why="A document that cannot be read translates nothing. Correct it at the reported place.",
)
BAD_IRI: Final = Rule(
    ("I303", "alignment-iri", "MUST", "reading alignments"),
    "Terms and ontologies are named by absolute IRIs, or by prefixes that the document declares.",
    why="A name that is not an IRI means nothing to others. Write the IRI, or declare the prefix.",
)
RELATION: Final = Rule(
    ("I304", "alignment-relation", "MUST", "reading alignments"),
    "The relation of a mapping is equivalent, broader, narrower or related.",
    why="A relation that is not understood could be used as if the terms were the same. Use one of the four.",
)
CONFIDENCE: Final = Rule(
    ("I305", "alignment-confidence", "MUST", "IoA 7.2"),
    "Confidences and scores are numbers from 0 to 1.",
    why="A higher number would win every conflict and pass every threshold. Correct it.",
)
CONFLICT: Final = Rule(
    ("I306", "alignment-conflict", "MUST", "reading alignments"),
    "Two terms have one mapping rule.",
    why="Of two rules for the same terms, readers could follow different ones. Remove one of them.",
)
UNKNOWN_TERM: Final = Rule(
    ("I307", "alignment-unknown-term", "MUST", "IoA 13"),
    "Mapping rules lead from a term of the source ontology to a term of the target ontology.",
    why="A rule that points to nothing is stale, or was added to mislead. Remove it, or align the right versions.",
)
OTHER_ONTOLOGY: Final = Rule(
    ("I308", "alignment-other-ontology", "MUST", "IoA 7.2"),
    "An artifact is used for the exact ontologies and versions that it names.",
    why="Terms change their meaning between versions. Align the versions in use.",
)
DOWNGRADE: Final = Rule(
    ("I309", "alignment-downgrade", "MUST", "IoA 13"),
    "An artifact is newer than the one it replaces, and its signer is trusted at least as much.",
    why="An older or less trusted mapping could lead critical tasks astray. Sign a newer version with a trusted key.",
)
SIGNATURE: Final = Rule(
    ("I310", "alignment-signature", "MUST", "IoA 13"),
    "The signature of an artifact is by a trusted key and for exactly this content.",
    why="An artifact that was changed after signing is not what its signer vouches for. Get the original.",
)
