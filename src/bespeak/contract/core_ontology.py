"""The core ontology (IoA 5.1, 5.2, 6.1): its classes and properties, and their names under a base IRI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import brief

Level = Literal["required", "recommended", "optional", "example", "reading"]
"""How binding a term is. `example`: the draft uses it without a declaration. `reading`: it fills a gap of the draft."""

Value = Literal["node", "iri", "literal"]
"""What a property holds: a node of a core class, which may be written inline; an IRI; or a literal."""


class CoreClass(msgspec.Struct, frozen=True):
    """A class of the core ontology."""

    name: str
    level: Level
    section: str
    meaning: str


class CoreProperty(msgspec.Struct, frozen=True):
    """A property of the core ontology."""

    name: str
    domains: tuple[str, ...]  # core classes that carry it; several are alternatives
    range: str  # core class of its values, or an empty string for other values
    value: Value
    level: Level
    section: str
    meaning: str
    many: bool = False  # True if documents write a list
    inverse: str = ""

    @property
    def is_object(self) -> bool:
        return self.value != "literal"


DOCUMENT_PATH: Final = "/capabilities.jsonld"  # of the capabilities of a service in JSON-LD
DOCUMENT_TYPE: Final = "application/ld+json"
_C: Final = CoreClass
_P: Final = CoreProperty
_CLASSES: Final = (
    _C("Agent", "required", "5.1", "Entity that can perform tasks and exchange messages."),
    _C("Capability", "required", "5.1", "Function or service that an agent can provide."),
    _C("Intent", "required", "5.1", "Goal-oriented description of a desired outcome."),
    _C("Task", "required", "5.1", "Unit of work with status and lifecycle."),
    _C("Context", "required", "5.1", "Constraints and environmental conditions."),
    _C("SemanticProfile", "required", "5.1", "Container for the semantic references of an interaction."),
    _C("Skill", "optional", "5.1", "Reusable expertise or competency that refines a capability."),
    _C("Resource", "optional", "5.1", "Data, tools or assets that a task needs."),
    _C("Constraint", "optional", "5.1", "Policy, rule or limit that bounds the execution of a task."),
    _C("Domain", "example", "5.5", "Domain of knowledge."),
    _C("Concept", "example", "5.5", "Concept of a domain."),
    _C("Message", "example", "5.2", "Message that carries a semantic profile."),
    _C("TermBinding", "reading", "6.2", "Sense in which an interaction uses a word."),
    _C("Validation", "reading", "11.3", "Result of the validation of a semantic profile."),
    _C("Alignment", "example", "7.2", "Artifact that maps the terms of one ontology to those of another."),
    _C("MappingRule", "example", "7.2", "Correspondence of two terms in an alignment artifact."),
)
_PROFILE: Final = ("SemanticProfile",)
_PROPERTIES: Final = (
    _P(
        *("hasCapability", ("Agent",), "Capability", "node", "required", "5.2"),
        meaning="Capability that an agent provides.",
        inverse="providedBy",
    ),
    _P("hasIntent", ("Task",), "Intent", "node", "required", "5.2", "Goal of a task."),
    _P("hasContext", ("Task",), "Context", "node", "required", "5.2", "Contextual constraints of a task."),
    # The draft declares Task as its domain, and an Intent carries it in Figure 3.
    _P(
        *("requiresCapability", ("Task", "Intent"), "Capability", "node", "required", "5.2"),
        meaning="Capability that is needed to fulfil a task or an intent.",
    ),
    _P(
        *("providedBy", ("Capability",), "Agent", "node", "required", "5.2"),
        meaning="Agent that provides a capability.",
        inverse="hasCapability",
    ),
    _P("hasProfile", ("Message",), "SemanticProfile", "node", "required", "5.2", "Semantic profile of a message."),
    _P("ontologyId", _PROFILE, "", "iri", "required", "5.2", "Ontology that is used for interpretation."),
    _P("ontologyVersion", _PROFILE, "", "literal", "required", "5.2", "Version of the referenced ontology."),
    _P("profileVersion", _PROFILE, "", "literal", "recommended", "5.2", "Version of the profile instance."),
    _P("alignmentRef", _PROFILE, "", "iri", "recommended", "5.2", "Alignment artifact that is used for mapping."),
    _P("profileContext", _PROFILE, "Context", "node", "recommended", "5.2", "Constraints for interpretation."),
    _P(
        *("capabilityRefs", _PROFILE, "Capability", "iri", "required", "5.3"),
        meaning="Capabilities that are needed.",
        many=True,
    ),
    _P("intentRef", _PROFILE, "Intent", "iri", "required", "5.3", "Intent that is the goal."),
    _P("inDomain", ("Concept",), "Domain", "node", "example", "5.5", "Domain that a concept belongs to."),
    _P("abbr", ("Concept",), "", "literal", "example", "5.5", "Abbreviation of a concept."),
    _P("preferredAbbr", ("Concept",), "", "literal", "example", "5.5", "Preferred abbreviation of a concept."),
    _P("appliesToDomain", ("Intent",), "Domain", "node", "example", "5.5", "Domain that an intent applies to."),
    # The draft does not say whether a concept of a sub-domain lies within a domain (5.4); here it does.
    _P("subDomainOf", ("Domain",), "Domain", "node", "reading", "5.4", "Domain that contains this one; transitive."),
    _P("domain", ("Context",), "Domain", "iri", "example", "6.2", "Domain of knowledge of an interaction."),
    _P("termBindings", ("Context",), "TermBinding", "node", "example", "6.2", "Senses of words.", many=True),
    _P("term", ("TermBinding",), "", "literal", "example", "6.2", "Word that is bound to a sense."),
    _P("sense", ("TermBinding",), "Concept", "iri", "example", "6.2", "Concept that a word means."),
    _P("sourceLang", ("Context",), "", "literal", "example", "11.2", "Language of the input."),
    _P("targetLang", ("Context",), "", "literal", "example", "11.2", "Language of the result."),
    _P("inputs", ("Capability",), "", "literal", "example", "6.3", "Input that a capability accepts.", many=True),
    _P("outputs", ("Capability",), "", "literal", "example", "6.3", "Output that a capability returns.", many=True),
    _P("validation", _PROFILE, "Validation", "node", "example", "11.3", "Result of the validation of a profile."),
    _P("status", ("Validation",), "", "literal", "example", "11.3", "Outcome: accept, renegotiate or reject."),
    _P("reason", ("Validation",), "", "literal", "example", "11.3", "Reason of the outcome."),
    _P("sourceOntologyId", ("Alignment",), "", "iri", "recommended", "7.2", "Ontology that is mapped from."),
    _P("targetOntologyId", ("Alignment",), "", "iri", "recommended", "7.2", "Ontology that is mapped to."),
    _P("mappingRules", ("Alignment",), "MappingRule", "node", "recommended", "7.2", "Rules of an artifact.", many=True),
    _P("from", ("MappingRule",), "", "iri", "example", "11.4", "Term that is mapped."),
    _P("to", ("MappingRule",), "", "iri", "example", "11.4", "Term that it is mapped to."),
    _P(
        *("confidence", ("Alignment", "MappingRule"), "", "literal", "recommended", "7.2"),
        meaning="Confidence in a mapping, from 0 to 1.",
    ),
)
CLASSES: Final[Mapping[str, CoreClass]] = {one.name: one for one in _CLASSES}  # classes by name
PROPERTIES: Final[Mapping[str, CoreProperty]] = {one.name: one for one in _PROPERTIES}  # properties by name
CORE_VERSION: Final = "1.0"  # version of the core ontology, as the examples of the draft name it


RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
OWL: Final = "http://www.w3.org/2002/07/owl#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
SKOS: Final = "http://www.w3.org/2004/02/skos/core#"
SHACL: Final = "http://www.w3.org/ns/shacl#"
OBO: Final = "http://www.geneontology.org/formats/oboInOwl#"
MOST_IRI: Final = 2_048  # most characters of an IRI

# Characters that RFC 3987 excludes from IRIs; an escaped control character is as hostile as a plain one.
_IRI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\x00-\x20\x7f-\xa0<>\"{}|^`\\\u2028\u2029\ud800-\udfff]+")
_ESCAPED_CONTROL: Final = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")


class Namespace(msgspec.Struct, frozen=True):
    """The IRIs of the core ontology and of its documents. The draft's own base is a placeholder."""

    base: str = "https://ex.org/"

    @property
    def terms(self) -> str:
        """Namespace of the classes and properties, the prefix `ioa:`."""
        return f"{self.base}ioa/semantic#"

    @property
    def context(self) -> str:
        return f"{self.base}ctx"

    @property
    def core(self) -> str:
        """IRI of the core ontology, as the examples of the draft name it."""
        return f"{self.base}onto/agent-core"

    def __call__(self, name: str) -> str:
        """Return the IRI of a class or property of the core."""
        return self.terms + name

    def name_of(self, iri: str) -> str:
        """Return the name of a core term, or an empty string for another IRI."""
        return iri[len(self.terms) :] if iri.startswith(self.terms) else ""


DEFAULT: Final = Namespace()


def parse_base(text: str) -> Namespace | Fault:
    if not is_iri(text) or not text.endswith("/"):
        return Fault(f"the base must be an absolute IRI that ends in '/'; got {brief(text)}")
    return Namespace(text)


def is_iri(text: str) -> bool:
    """Return True for an absolute IRI of bounded length without control characters, escaped or not."""
    return len(text) <= MOST_IRI and _IRI.fullmatch(text) is not None and not _ESCAPED_CONTROL.search(text)
