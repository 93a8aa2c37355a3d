"""I201-I232: rules for semantic profiles, capability registrations and versions (IoA 5.3, 5.4, 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.text.diagnostics.diagnostic import Normative, Rule, brief


@dataclass(frozen=True, slots=True)
class ProfileRule(Rule):
    """Rule whose violation rejects a profile: always if it binds with MUST, else as the local policy decides.

    The consistency rules are worded with MUST, but the set is only RECOMMENDED (5.4): they are SHOULD here.
    """

    message: str = ""
    """Template of a violation: `{path}` is its place, `{value}` what stands there, `{other}` what it conflicts with."""
    reason: str = ""  # constant reason for the answer to a peer, as in Figure 9; the summary of the rule if empty

    @property
    def always(self) -> bool:
        """True if no policy can accept or renegotiate a violation."""
        return self.normative == "MUST"

    def text(self, path: str, value: object = None, other: object = None) -> str:
        return self.message.format(path=path, value=brief(value), other=brief(other))


def profile_rule(head: tuple[str, str, Normative, str], summary: str, *, message: str, reason: str = "") -> ProfileRule:
    """Return a rule with this id, name, binding and source."""
    return ProfileRule(*head, summary=summary, message=message, reason=reason)


CONTEXT: Final = profile_rule(
    ("I201", "profile-context", "MUST", "IoA 6.1"),
    "A semantic payload has an @context that defines the ioa: terms.",
    message="{path} must be a context that defines the ioa: terms; got {value}",
)
UNKNOWN_CONTEXT: Final = profile_rule(
    ("I202", "unknown-profile-context", "MUST", "IoA 6.1"),
    "A context is shipped or registered; none is fetched.",
    message="{path} names the context {value}, which is neither shipped nor registered",
)
PROFILE_TYPE: Final = profile_rule(
    ("I203", "profile-type", "MUST", "IoA 6.2"),
    "The type of a semantic envelope is ioa:SemanticProfile.",
    message="{path} must be ioa:SemanticProfile; got {value}",
)
ONTOLOGY_ID: Final = profile_rule(
    ("I204", "profile-ontology-id", "MUST", "IoA 6.2"),
    "A semantic envelope names its ontology with one absolute IRI.",
    message="{path} must be one absolute IRI; got {value}",
)
ONTOLOGY_VERSION: Final = profile_rule(
    ("I205", "profile-ontology-version", "MUST", "IoA 6.2"),
    "A semantic envelope names the version of its ontology.",
    message="{path} must be one version, such as '1.0'; got {value}",
)
CAPABILITY_REFS: Final = profile_rule(
    ("I206", "profile-capability-refs", "MUST", "IoA 6.2"),
    "A semantic envelope references one or more capabilities by their IRIs.",
    message="{path} must list one or more IRIs of capabilities; got {value}",
)
INTENT_REF: Final = profile_rule(
    ("I207", "profile-intent-ref", "MUST", "IoA 6.2"),
    "A semantic envelope references one intent by its IRI.",
    message="{path} must be one IRI of an intent; got {value}",
)
PROFILE_VALUE: Final = profile_rule(
    ("I208", "profile-value", "MUST", "IoA 6.2"),
    "The members of a semantic payload have values of their kind.",
    message="{path} must be {other}; got {value}",
)
PROFILE_SIZE: Final = profile_rule(
    ("I209", "profile-size", "MUST", "IoA 6.2"),
    "A semantic payload stays within the limits for bytes, depth, members and texts.",
    message="{path} must have at most {other}; got {value}",
)
REGISTRATION_TYPE: Final = profile_rule(
    ("I211", "registration-type", "MUST", "IoA 6.3"),
    "A capability registration contains ioa:Capability objects.",
    message="{path} must be ioa:Capability; got {value}",
)
REGISTRATION_ID: Final = profile_rule(
    ("I212", "registration-id", "MUST", "IoA 6.3"),
    "A registered capability has an identifier.",
    message="{path} must be one absolute IRI; got {value}",
)
REGISTRATION_CONSTRAINTS: Final = profile_rule(
    ("I213", "registration-constraints", "MUST", "IoA 6.3"),
    "A registered capability has input and output constraints.",
    message="{path} must list one or more constraints, such as media types; got {value}",
)
CAPABILITY_RANGE: Final = profile_rule(
    ("I221", "capability-range", "SHOULD", "IoA 5.4"),
    "ioa:hasCapability relates an agent to a capability.",
    message="{path} must relate an ioa:Agent to an ioa:Capability; {value} is not {other}",
)
CAPABILITY_TYPE: Final = profile_rule(
    ("I222", "capability-type", "SHOULD", "IoA 5.4"),
    "capabilityRefs reference capabilities that the ontology declares.",
    message="{path} must reference an ioa:Capability of the ontology; got {value}",
)
INTENT_TYPE: Final = profile_rule(
    ("I223", "intent-type", "SHOULD", "IoA 5.4"),
    "intentRef references an intent that the ontology declares.",
    message="{path} must reference an ioa:Intent of the ontology; got {value}",
)
INTENT_CAPABILITIES: Final = profile_rule(
    ("I224", "intent-capabilities", "SHOULD", "IoA 5.4"),
    "capabilityRefs cover every capability that the intent requires.",
    message="{path} names the intent {value}, which requires {other}; capabilityRefs must cover it",
)
INTENT_DOMAIN: Final = profile_rule(
    ("I225", "intent-domain", "SHOULD", "IoA 5.4"),
    "The intent applies to the domain of the profile.",
    message="{path} names the intent {value}, which does not apply to the domain {other}",
)
BINDING_DOMAIN: Final = profile_rule(
    ("I226", "binding-domain", "SHOULD", "IoA 5.4"),
    "With a domain, every term binding resolves to a concept of that domain.",
    message="{path} must be a concept within the domain {other}; got {value}",
    reason="termBinding does not resolve to a concept within the domain",
)
BINDING_CONFLICT: Final = profile_rule(
    ("I227", "binding-conflict", "SHOULD", "IoA 5.4"),
    "The sense of a term binding does not conflict with the domain.",
    message="{path} is {value}, a concept of another domain than {other}",
    reason="termBinding sense conflicts with domain",
)
VERSION_ORDER: Final = profile_rule(
    ("I231", "version-order", "SHOULD", "IoA 5.3"),
    "Versions are explicit and comparable.",
    message="{path} is {value}, which does not compare with {other}",
)
VERSION_COMPATIBLE: Final = profile_rule(
    ("I232", "version-compatible", "SHOULD", "IoA 7.1"),
    "The requested version is of the same major version, and its minor version is not higher than the provided one.",
    message="{path} is {value}, which version {other} does not serve",
)


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
