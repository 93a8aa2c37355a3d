"""SHACL shapes for profiles and registrations, generated from the table of the core and its rules (IoA 5.4, 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bespeak.contract.ontology import rules
from bespeak.contract.ontology.core import PROPERTIES, CoreProperty
from bespeak.contract.ontology.namespace import DEFAULT, OWL, RDFS, SHACL, Namespace
from bespeak.contract.ontology.rules import ProfileRule
from bespeak.documents.ontology.node import Iri, Node, write_turtle

_ONE: Final = {"sh:minCount": 1, "sh:maxCount": 1}
_SOME: Final = {"sh:minCount": 1}
_IRI: Final = {"sh:nodeKind": Iri("sh:IRI")}
_LITERAL: Final = {"sh:nodeKind": Iri("sh:Literal")}

_PROFILE: Final = {"sh:targetClass": Iri("ioa:SemanticProfile")}
_REQUIRED: Final = ("ontologyId", "ontologyVersion", "capabilityRefs", "intentRef")
_SINGLE: Final = frozenset({"profileVersion", "profileContext", "domain", "sourceLang", "targetLang"})

# The value of a SPARQL constraint is what the message quotes; `$this` is the profile.
_INTENT_CAPABILITIES: Final = """
SELECT $this ?value WHERE {
    $this ioa:intentRef ?intent . ?intent ioa:requiresCapability ?value .
    FILTER NOT EXISTS { $this ioa:capabilityRefs ?given . ?value (rdfs:subClassOf|owl:equivalentClass)* ?given }
}"""
_INTENT_DOMAIN: Final = """
SELECT $this ?value WHERE {
    $this ioa:intentRef ?value ; ioa:profileContext/ioa:domain ?domain .
    FILTER EXISTS { ?value ioa:appliesToDomain ?any }
    FILTER NOT EXISTS { ?value ioa:appliesToDomain ?wide . ?domain ioa:subDomainOf* ?wide }
}"""
_BINDING_DOMAIN: Final = """
SELECT $this ?value WHERE {
    $this ioa:profileContext ?context . ?context ioa:domain ?domain ; ioa:termBindings/ioa:sense ?value .
    FILTER NOT EXISTS { ?value a?/rdfs:subClassOf* ioa:Concept ; ioa:inDomain ?any }
}"""
_BINDING_CONFLICT: Final = """
SELECT $this ?value WHERE {
    $this ioa:profileContext ?context . ?context ioa:domain ?domain ; ioa:termBindings/ioa:sense ?value .
    ?value a?/rdfs:subClassOf* ioa:Concept ; ioa:inDomain ?any .
    FILTER NOT EXISTS { ?value ioa:inDomain ?inner . ?inner ioa:subDomainOf* ?domain }
}"""


def profile_shapes(namespace: Namespace = DEFAULT) -> str:
    """Write the shapes for semantic profiles and for ontologies that use the core. Each is named by its rule."""
    shapes: dict[str, Node] = {
        "shapes:": {
            "sh:declare": tuple(
                {"sh:prefix": prefix, "sh:namespace": iri}
                for prefix, iri in (("ioa", namespace.terms), ("rdfs", RDFS), ("owl", OWL))
            )
        },
        **_members(),
        **_consistency(),
        **dict(_values()),
    }
    return write_turtle(_prefixes(namespace), shapes)


def registration_shapes(namespace: Namespace = DEFAULT) -> str:
    """Write the shapes for a capability registration. They hold for the payload alone, not for a whole ontology."""
    target = {"sh:targetClass": Iri("ioa:Capability")}
    shapes: dict[str, Node] = {
        f"shapes:{rules.REGISTRATION_ID.id}": _shape(rules.REGISTRATION_ID, target, _IRI),
        **{
            f"shapes:{rules.REGISTRATION_CONSTRAINTS.id}-{name}": _path_shape(
                rules.REGISTRATION_CONSTRAINTS, target, name, {**_SOME, **_LITERAL}
            )
            for name in ("inputs", "outputs")
        },
    }
    return write_turtle(_prefixes(namespace), shapes)


def _prefixes(namespace: Namespace) -> dict[str, str]:
    return {"shapes": f"{namespace.base}ioa/shapes#", "ioa": namespace.terms, "sh": SHACL, "rdfs": RDFS}


def _members() -> dict[str, Node]:
    """Build the shapes of the members that an envelope must have."""
    is_profile = {"sh:targetSubjectsOf": tuple(Iri(f"ioa:{name}") for name in _REQUIRED)}
    return {
        f"shapes:{rules.PROFILE_TYPE.id}": _shape(
            rules.PROFILE_TYPE, is_profile, {"sh:class": Iri("ioa:SemanticProfile")}
        ),
        **dict(
            _named(rule, name, counts | kind)
            for rule, name, counts, kind in (
                (rules.ONTOLOGY_ID, "ontologyId", _ONE, _IRI),
                (rules.ONTOLOGY_VERSION, "ontologyVersion", _ONE, _LITERAL),
                (rules.CAPABILITY_REFS, "capabilityRefs", _SOME, _IRI),
                (rules.INTENT_REF, "intentRef", _ONE, _IRI),
            )
        ),
    }


def _consistency() -> dict[str, Node]:
    """Build the shapes of the consistency rules."""
    agent = {"sh:targetSubjectsOf": Iri("ioa:hasCapability")}
    provided = {"sh:targetObjectsOf": Iri("ioa:hasCapability")}
    return {
        f"shapes:{rules.CAPABILITY_RANGE.id}-agent": _shape(rules.CAPABILITY_RANGE, agent, _of_class("Agent")),
        f"shapes:{rules.CAPABILITY_RANGE.id}-capability": _shape(
            rules.CAPABILITY_RANGE, provided, _of_class("Capability")
        ),
        **dict(
            [
                _named(rules.CAPABILITY_TYPE, "capabilityRefs", _of_class("Capability")),
                _named(rules.INTENT_TYPE, "intentRef", _of_class("Intent")),
            ]
        ),
        **{
            f"shapes:{rule.id}": {
                "a": Iri("sh:NodeShape"),
                **_PROFILE,
                "sh:severity": _severity(rule),
                "sh:sparql": {
                    "a": Iri("sh:SPARQLConstraint"),
                    "sh:message": _message(rule),
                    "sh:prefixes": Iri("shapes:"),
                    "sh:select": query + "\n",
                },
            }
            for rule, query in (
                (rules.INTENT_CAPABILITIES, _INTENT_CAPABILITIES),
                (rules.INTENT_DOMAIN, _INTENT_DOMAIN),
                (rules.BINDING_DOMAIN, _BINDING_DOMAIN),
                (rules.BINDING_CONFLICT, _BINDING_CONFLICT),
            )
        },
    }


def _values() -> Iterator[tuple[str, Node]]:
    """Build a shape for each other member: the kind of its values, and how many there may be."""
    for name, one in PROPERTIES.items():
        target = _target(one)
        if target is not None and name not in _REQUIRED:
            counts: dict[str, int] = {"sh:maxCount": 1} if name in _SINGLE else {}
            if one.domains == ("TermBinding",):
                counts = _ONE
            # Nodes without a type may be blank: a profile writes its context inline.
            kind = {"node": Iri("sh:BlankNodeOrIRI"), "iri": Iri("sh:IRI"), "literal": Iri("sh:Literal")}[one.value]
            rule = rules.PROFILE_VALUE
            yield f"shapes:{rule.id}-{name}", _path_shape(rule, target, name, {**counts, "sh:nodeKind": kind})


def _target(one: CoreProperty) -> dict[str, Any] | None:
    return {
        "SemanticProfile": _PROFILE,
        "Context": {"sh:targetObjectsOf": Iri("ioa:profileContext")},
        "TermBinding": {"sh:targetObjectsOf": Iri("ioa:termBindings")},
    }.get(one.domains[0])


def _of_class(name: str) -> dict[str, Any]:
    """Require an individual of a core class, or a class below it: domain ontologies declare capabilities as either."""
    above = {"sh:path": {"sh:oneOrMorePath": Iri("rdfs:subClassOf")}, "sh:hasValue": Iri(f"ioa:{name}")}
    return {"sh:or": [{"sh:class": Iri(f"ioa:{name}")}, {"sh:property": above}]}


def _named(rule: ProfileRule, path: str, constraint: dict[str, Any]) -> tuple[str, Node]:
    return f"shapes:{rule.id}", _path_shape(rule, _PROFILE, path, constraint)


def _shape(rule: ProfileRule, target: dict[str, Any], constraint: dict[str, Any]) -> Node:
    said = {"sh:severity": _severity(rule), "sh:message": _message(rule)}
    return {"a": Iri("sh:NodeShape"), **target, **constraint, **said}


def _path_shape(rule: ProfileRule, target: dict[str, Any], path: str, constraint: dict[str, Any]) -> Node:
    said = {"sh:severity": _severity(rule), "sh:message": _message(rule)}
    return {"a": Iri("sh:PropertyShape"), **target, "sh:path": Iri(f"ioa:{path}"), **constraint, **said}


def _severity(rule: ProfileRule) -> Iri:
    return Iri("sh:Violation" if rule.always else "sh:Warning")


def _message(rule: ProfileRule) -> str:
    return f"{rule.id}: {rule.reason or rule.summary}"
