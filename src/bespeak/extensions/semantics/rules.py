"""I101-I310: rules for ontologies, semantic profiles, capability registrations and alignment artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule, brief
from bespeak.text.diagnostics.report import page_of

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
UNKNOWN_CONCEPT: Final = Rule("I111", "unknown-concept", "SHOULD", "IoA 5.2")


@dataclass(frozen=True, slots=True)
class ProfileRule(Rule):
    """Rule whose violation rejects a profile: always if it binds with MUST, else as the local policy decides.

    The consistency rules are worded with MUST, but the set is only RECOMMENDED (5.4): they are SHOULD here.
    """

    message: str = ""
    """Template of a violation, behind its place: `{value}` is what stands there, `{other}` what it conflicts with."""
    stated: str = ""  # reason for the answer to a peer, where a figure of the draft has one

    @property
    def always(self) -> bool:
        """True if no policy can accept or renegotiate a violation."""
        return self.normative == "MUST"

    @property
    def reason(self) -> str:
        """Constant reason for the answer to a peer, as in Figure 9."""
        return self.stated or page_of(self).summary

    def text(self, path: str, value: object = None, other: object = None) -> str:
        return f"{path} {self.message.format(value=brief(value), other=brief(other))}"


def must(rule: str, name: str, section: str, message: str) -> ProfileRule:
    return ProfileRule(rule, name, "MUST", f"IoA {section}", message=message)


def should(rule: str, name: str, section: str, message: str, stated: str = "") -> ProfileRule:
    return ProfileRule(rule, name, "SHOULD", f"IoA {section}", message=message, stated=stated)


CONTEXT: Final = must("I201", "profile-context", "6.1", "must be a context that defines the ioa: terms; got {value}")
UNKNOWN_CONTEXT: Final = must(
    "I202", "unknown-profile-context", "6.1", "names the context {value}, which is neither shipped nor registered"
)
PROFILE_TYPE: Final = must("I203", "profile-type", "6.2", "must be ioa:SemanticProfile; got {value}")
ONTOLOGY_ID: Final = must("I204", "profile-ontology-id", "6.2", "must be one absolute IRI; got {value}")
ONTOLOGY_VERSION: Final = must(
    "I205", "profile-ontology-version", "6.2", "must be one version, such as '1.0'; got {value}"
)
CAPABILITY_REFS: Final = must(
    "I206", "profile-capability-refs", "6.2", "must list one or more IRIs of capabilities; got {value}"
)
INTENT_REF: Final = must("I207", "profile-intent-ref", "6.2", "must be one IRI of an intent; got {value}")
PROFILE_VALUE: Final = must("I208", "profile-value", "6.2", "must be {other}; got {value}")
PROFILE_SIZE: Final = must("I209", "profile-size", "6.2", "must have at most {other}; got {value}")
REGISTRATION_TYPE: Final = must("I211", "registration-type", "6.3", "must be ioa:Capability; got {value}")
REGISTRATION_ID: Final = must("I212", "registration-id", "6.3", "must be one absolute IRI; got {value}")
REGISTRATION_CONSTRAINTS: Final = must(
    "I213", "registration-constraints", "6.3", "must list one or more constraints, such as media types; got {value}"
)
CAPABILITY_RANGE: Final = should(
    "I221", "capability-range", "5.4", "must relate an ioa:Agent to an ioa:Capability; {value} is not {other}"
)
CAPABILITY_TYPE: Final = should(
    "I222", "capability-type", "5.4", "must reference an ioa:Capability of the ontology; got {value}"
)
INTENT_TYPE: Final = should("I223", "intent-type", "5.4", "must reference an ioa:Intent of the ontology; got {value}")
INTENT_CAPABILITIES: Final = should(
    "I224",
    "intent-capabilities",
    "5.4",
    "names the intent {value}, which requires {other}; capabilityRefs must cover it",
)
INTENT_DOMAIN: Final = should(
    "I225", "intent-domain", "5.4", "names the intent {value}, which does not apply to the domain {other}"
)
BINDING_DOMAIN: Final = should(
    "I226",
    "binding-domain",
    "5.4",
    "must be a concept within the domain {other}; got {value}",
    "termBinding does not resolve to a concept within the domain",
)
BINDING_CONFLICT: Final = should(
    "I227",
    "binding-conflict",
    "5.4",
    "is {value}, a concept of another domain than {other}",
    "termBinding sense conflicts with domain",
)
VERSION_ORDER: Final = should("I231", "version-order", "5.3", "is {value}, which does not compare with {other}")
VERSION_COMPATIBLE: Final = should(
    "I232", "version-compatible", "7.1", "is {value}, which version {other} does not serve"
)
UNKNOWN_ONTOLOGY: Final = should(
    "I241",
    "profile-ontology-unknown",
    "7.1",
    "is {value}; this service uses {other}, and no accepted alignment leads there",
)
UNKNOWN_ALIGNMENT: Final = should(
    "I242", "profile-alignment-unknown", "7.2", "names the alignment {value}, which cannot be used here: {other}"
)
UNCOVERED: Final = should(
    "I243", "profile-reference-uncovered", "7.1", "is {value}, for which there is no mapping to {other}"
)
LOW_CONFIDENCE: Final = should(
    "I244", "mapping-confidence", "7.4", "is {value}, whose mapping has only a confidence of {other}"
)
PROVENANCE: Final = should(
    "I245", "mapping-provenance", "13", "is {value}, whose mapping by {other} does not say who or what made it"
)
NOT_PROVIDED: Final = should("I246", "capability-not-provided", "7.1", "is {value}; the endpoint provides {other}")
UNSTABLE: Final = must("I247", "task-profile-changed", "9", "differs from the profile of the task")
UNCONFIRMED: Final = should(
    "I248",
    "mapping-unconfirmed",
    "13",
    "is {value}, which maps {other}; for this call, the operator must have confirmed it",
)
UNTRANSLATED: Final = should("I249", "data-untranslated", "7.1", "cannot be translated: {other}")

ALIGNMENT_TOO_LARGE: Final = Rule("I301", "alignment-too-large", "MUST", "reading alignments")
BAD_ARTIFACT: Final = Rule("I302", "malformed-alignment", "MUST", "IoA 7.2")
ALIGNMENT_IRI: Final = Rule("I303", "alignment-iri", "MUST", "reading alignments")
RELATION: Final = Rule("I304", "alignment-relation", "MUST", "reading alignments")
CONFIDENCE: Final = Rule("I305", "alignment-confidence", "MUST", "IoA 7.2")
CONFLICT: Final = Rule("I306", "alignment-conflict", "MUST", "reading alignments")
UNKNOWN_TERM: Final = Rule("I307", "alignment-unknown-term", "MUST", "IoA 13")
OTHER_ONTOLOGY: Final = Rule("I308", "alignment-other-ontology", "MUST", "IoA 7.2")
DOWNGRADE: Final = Rule("I309", "alignment-downgrade", "MUST", "IoA 13")
SIGNATURE: Final = Rule("I310", "alignment-signature", "MUST", "IoA 13")
VALUES: Final = Rule("I311", "alignment-values", "MUST", "IoA 7.2")
