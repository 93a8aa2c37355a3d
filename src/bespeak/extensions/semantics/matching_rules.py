"""I241-I248: rules for the match between a semantic profile and a service (IoA 7, 9, 13)."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.semantics.profile_rules import profile_rule

UNKNOWN_ONTOLOGY: Final = profile_rule(
    ("I241", "profile-ontology-unknown", "SHOULD", "IoA 7.1"),
    "The ontology of a profile is one of the service's own, or an alignment leads to one.",
    message="{path} is {value}; this service uses {other}, and no accepted alignment leads there",
)
UNKNOWN_ALIGNMENT: Final = profile_rule(
    ("I242", "profile-alignment-unknown", "SHOULD", "IoA 7.2"),
    "The alignments that a profile names are registered, and lead from its ontology to one of the service.",
    message="{path} names the alignment {value}, which cannot be used here: {other}",
)
UNCOVERED: Final = profile_rule(
    ("I243", "profile-reference-uncovered", "SHOULD", "IoA 7.1"),
    "An accepted mapping covers every reference of a profile in another vocabulary.",
    message="{path} is {value}, for which there is no mapping to {other}",
)
LOW_CONFIDENCE: Final = profile_rule(
    ("I244", "mapping-confidence", "SHOULD", "IoA 7.4"),
    "The confidence of a mapping reaches the local threshold, or the operator has confirmed it.",
    message="{path} is {value}, whose mapping has only a confidence of {other}",
)
PROVENANCE: Final = profile_rule(
    ("I245", "mapping-provenance", "SHOULD", "IoA 13"),
    "Mappings for calls that cannot be undone say who or what made them.",
    message="{path} is {value}, whose mapping by {other} does not say who or what made it",
)
NOT_PROVIDED: Final = profile_rule(
    ("I246", "capability-not-provided", "SHOULD", "IoA 7.1"),
    "The endpoint provides a capability that the profile references.",
    message="{path} is {value}; the endpoint provides {other}",
)
UNSTABLE: Final = profile_rule(
    ("I247", "task-profile-changed", "MUST", "IoA 9"),
    "The profile of a task stays the same unless it is renegotiated.",
    message="{path} differs from the profile of the task",
)
UNCONFIRMED: Final = profile_rule(
    ("I248", "mapping-unconfirmed", "SHOULD", "IoA 13"),
    "The operator has confirmed the mappings for calls that cannot be undone.",
    message="{path} is {value}, which maps {other} and is not confirmed by the operator; this call cannot be undone",
)
