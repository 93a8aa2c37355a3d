"""Published documents of the core ontology: OWL (IoA 5), and SHACL shapes (IoA 5.4, 6)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import (
    CLASSES,
    CORE_VERSION,
    DEFAULT,
    OWL,
    PROPERTIES,
    RDFS,
    SHACL,
    SKOS,
    CoreClass,
    CoreProperty,
    Level,
    Namespace,
)
from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.ontology.contexts import core_context
from bespeak.extensions.semantics.rules import ProfileRule


class Iri(msgspec.Struct, frozen=True):
    """A resource, by its prefixed name or its whole IRI."""

    name: str


Value = Iri | str | int | bool | dict[str, Any] | list[Any]
"""A resource, a literal, a blank node with its own properties, or an RDF list."""

Node = Mapping[str, Value | tuple[Value, ...]]
"""Values by prefixed property; `a` is the type. A tuple holds several values."""
_INDENT: Final = "    "


def write_turtle(prefixes: Mapping[str, str], nodes: Mapping[str, Node]) -> str:
    head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in prefixes.items())
    return head + "".join(f"\n{_resource(name)} {_properties(node, 1)} .\n" for name, node in nodes.items())


def write_jsonld(prefixes: Mapping[str, str], nodes: Mapping[str, Node]) -> str:
    graph = [{"@id": name, **_members(node)} for name, node in nodes.items()]
    return json.dumps({"@context": dict(prefixes), "@graph": graph}, indent=2, ensure_ascii=False) + "\n"


def _properties(node: Node, depth: int) -> str:
    """Write a property on each line; several values on one."""
    return f" ;\n{_INDENT * depth}".join(
        f"{name} {', '.join(_object(one, depth) for one in _values(value))}" for name, value in node.items()
    )


def _object(value: Value, depth: int) -> str:
    match value:
        case Iri(name):
            return _resource(name)
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"""{escaped}"""' if "\n" in escaped else f'"{escaped}"'
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case dict():
            inside = _INDENT * (depth + 1)
            return f"[\n{inside}{_properties(value, depth + 1)}\n{_INDENT * depth}]"
        case list():
            return f"( {' '.join(_object(one, depth) for one in value)} )"


def _resource(name: str) -> str:
    return f"<{name}>" if "://" in name else name


def _values(value: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)


def _members(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in node.items():
        values = _values(value)
        written = [one.name if name == "a" and isinstance(one, Iri) else _json(one) for one in values]
        found["@type" if name == "a" else name] = written if len(written) > 1 else written[0]
    return found


def _json(value: Value) -> Any:
    match value:
        case Iri(name):
            return {"@id": name}
        case dict():
            return _members(value)
        case list():
            return {"@list": [_json(one) for one in value]}
        case _:
            return value


_NOTES: dict[Level, str] = {
    "required": "Required by IoA {}.",
    "recommended": "Recommended by IoA {}.",
    "optional": "Optional by IoA {}.",
    "example": "From the examples of IoA {}, which does not declare it.",
    "reading": "Fills a gap of IoA {}.",
}


def _nodes(namespace: Namespace) -> dict[str, Node]:
    nodes: dict[str, Node] = {
        namespace.core: {
            "a": Iri("owl:Ontology"),
            "rdfs:label": "Core ontology for the interaction of agents",
            "owl:versionInfo": CORE_VERSION,
        }
    }
    declared: list[CoreClass | CoreProperty] = [*CLASSES.values(), *PROPERTIES.values()]
    for one in declared:
        nodes[f"ioa:{one.name}"] = {
            **(_property(one) if isinstance(one, CoreProperty) else {"a": Iri("owl:Class")}),
            "rdfs:label": one.name,
            "rdfs:comment": one.meaning,
            "skos:note": _NOTES[one.level].format(one.section),
            "rdfs:isDefinedBy": Iri(namespace.core),
        }
    return nodes


def _property(declared: CoreProperty) -> Node:
    classes = [Iri(f"ioa:{name}") for name in declared.domains]
    # Two domains would mean that a subject is of both classes.
    domain: Value = classes[0] if len(classes) == 1 else {"a": Iri("owl:Class"), "owl:unionOf": [*classes]}
    node: dict[str, Value | tuple[Value, ...]] = {
        "a": Iri("owl:ObjectProperty") if declared.is_object else Iri("owl:DatatypeProperty"),
        "rdfs:domain": domain,
    }
    if declared.name == "subDomainOf":
        node["a"] = (Iri("owl:ObjectProperty"), Iri("owl:TransitiveProperty"))
    if declared.range:
        node["rdfs:range"] = Iri(f"ioa:{declared.range}")
    elif not declared.is_object:
        node["rdfs:range"] = Iri("rdfs:Literal")
    if declared.inverse:
        node["owl:inverseOf"] = Iri(f"ioa:{declared.inverse}")
    return node


_ONE: Final = {"sh:minCount": 1, "sh:maxCount": 1}
_SOME: Final = {"sh:minCount": 1}
_IRI: Final = {"sh:nodeKind": Iri("sh:IRI")}
_LITERAL: Final = {"sh:nodeKind": Iri("sh:Literal")}
_PROFILE: Final = {"sh:targetClass": Iri("ioa:SemanticProfile")}
_REQUIRED: Final = ("ontologyId", "ontologyVersion", "capabilityRefs", "intentRef")
_SINGLE: Final = frozenset({"profileVersion", "profileContext", "domain", "sourceLang", "targetLang"})

# The value of a SPARQL constraint is what the message quotes; `$this` is the profile.
_QUERIES: Final[Mapping[ProfileRule, str]] = {
    rules.INTENT_CAPABILITIES: """
SELECT $this ?value WHERE {
    $this ioa:intentRef ?intent . ?intent ioa:requiresCapability ?value .
    FILTER NOT EXISTS { $this ioa:capabilityRefs ?given . ?value (rdfs:subClassOf|owl:equivalentClass)* ?given }
}""",
    rules.INTENT_DOMAIN: """
SELECT $this ?value WHERE {
    $this ioa:intentRef ?value ; ioa:profileContext/ioa:domain ?domain .
    FILTER EXISTS { ?value ioa:appliesToDomain ?any }
    FILTER NOT EXISTS { ?value ioa:appliesToDomain ?wide . ?domain ioa:subDomainOf* ?wide }
}""",
    rules.BINDING_DOMAIN: """
SELECT $this ?value WHERE {
    $this ioa:profileContext ?context . ?context ioa:domain ?domain ; ioa:termBindings/ioa:sense ?value .
    FILTER NOT EXISTS { ?value a?/rdfs:subClassOf* ioa:Concept ; ioa:inDomain ?any }
}""",
    rules.BINDING_CONFLICT: """
SELECT $this ?value WHERE {
    $this ioa:profileContext ?context . ?context ioa:domain ?domain ; ioa:termBindings/ioa:sense ?value .
    ?value a?/rdfs:subClassOf* ioa:Concept ; ioa:inDomain ?any .
    FILTER NOT EXISTS { ?value ioa:inDomain ?inner . ?inner ioa:subDomainOf* ?domain }
}""",
}


def profile_shapes(namespace: Namespace = DEFAULT) -> str:
    """Write the shapes for semantic profiles and for ontologies that use the core. Each is named by its rule."""
    prefixes = {"ioa": namespace.terms, "rdfs": RDFS, "owl": OWL}
    declared = tuple({"sh:prefix": prefix, "sh:namespace": iri} for prefix, iri in prefixes.items())
    shapes: dict[str, Node] = {"shapes:": {"sh:declare": declared}, **dict(_consistency()), **dict(_shapes_values())}
    return write_turtle(_shapes_prefixes(namespace), shapes)


def registration_shapes(namespace: Namespace = DEFAULT) -> str:
    """Write the shapes for a capability registration. They hold for the payload alone, not for a whole ontology."""
    target = {"sh:targetClass": Iri("ioa:Capability")}
    shapes = [_shape(rules.REGISTRATION_ID, target, _IRI)]
    for name in ("inputs", "outputs"):
        constraints = rules.REGISTRATION_CONSTRAINTS
        shapes.append(_shape(constraints, target, {**_SOME, **_LITERAL}, name, suffix=f"-{name}"))
    return write_turtle(_shapes_prefixes(namespace), dict(shapes))


def _shapes_prefixes(namespace: Namespace) -> dict[str, str]:
    return {"shapes": f"{namespace.base}ioa/shapes#", "ioa": namespace.terms, "sh": SHACL, "rdfs": RDFS}


def _consistency() -> Iterator[tuple[str, Node]]:
    """Yield the shapes of the members that an envelope must have, and of the consistency rules."""
    is_profile = {"sh:targetSubjectsOf": tuple(Iri(f"ioa:{name}") for name in _REQUIRED)}
    yield _shape(rules.PROFILE_TYPE, is_profile, {"sh:class": Iri("ioa:SemanticProfile")})
    yield _shape(rules.ONTOLOGY_ID, _PROFILE, _ONE | _IRI, "ontologyId")
    yield _shape(rules.ONTOLOGY_VERSION, _PROFILE, _ONE | _LITERAL, "ontologyVersion")
    yield _shape(rules.CAPABILITY_REFS, _PROFILE, _SOME | _IRI, "capabilityRefs")
    yield _shape(rules.INTENT_REF, _PROFILE, _ONE | _IRI, "intentRef")
    agent = {"sh:targetSubjectsOf": Iri("ioa:hasCapability")}
    provided = {"sh:targetObjectsOf": Iri("ioa:hasCapability")}
    yield _shape(rules.CAPABILITY_RANGE, agent, _of_class("Agent"), suffix="-agent")
    yield _shape(rules.CAPABILITY_RANGE, provided, _of_class("Capability"), suffix="-capability")
    yield _shape(rules.CAPABILITY_TYPE, _PROFILE, _of_class("Capability"), "capabilityRefs")
    yield _shape(rules.INTENT_TYPE, _PROFILE, _of_class("Intent"), "intentRef")
    for rule, query in _QUERIES.items():
        said = {"a": Iri("sh:SPARQLConstraint"), "sh:message": _message(rule)}
        constraint = {**said, "sh:prefixes": Iri("shapes:"), "sh:select": query + "\n"}
        judged: Node = {"sh:severity": _severity(rule), "sh:sparql": constraint}
        yield f"shapes:{rule.id}", {"a": Iri("sh:NodeShape"), **_PROFILE, **judged}


def _shapes_values() -> Iterator[tuple[str, Node]]:
    """Yield a shape for each other member: the kind of its values, and how many there may be."""
    targets: dict[str, dict[str, Any]] = {
        "SemanticProfile": _PROFILE,
        "Context": {"sh:targetObjectsOf": Iri("ioa:profileContext")},
        "TermBinding": {"sh:targetObjectsOf": Iri("ioa:termBindings")},
    }
    for name, one in PROPERTIES.items():
        target = targets.get(one.domains[0])
        if target is not None and name not in _REQUIRED:
            counts: dict[str, int] = {"sh:maxCount": 1} if name in _SINGLE else {}
            if one.domains == ("TermBinding",):
                counts = _ONE
            # Nodes without a type may be blank: a profile writes its context inline.
            kind = {"node": Iri("sh:BlankNodeOrIRI"), "iri": Iri("sh:IRI"), "literal": Iri("sh:Literal")}[one.value]
            yield _shape(rules.PROFILE_VALUE, target, {**counts, "sh:nodeKind": kind}, name, suffix=f"-{name}")


def _of_class(name: str) -> dict[str, Any]:
    """Require an individual of a core class, or a class below it: domain ontologies declare capabilities as either."""
    above = {"sh:path": {"sh:oneOrMorePath": Iri("rdfs:subClassOf")}, "sh:hasValue": Iri(f"ioa:{name}")}
    return {"sh:or": [{"sh:class": Iri(f"ioa:{name}")}, {"sh:property": above}]}


def _shape(
    rule: ProfileRule, target: dict[str, Any], constraint: dict[str, Any], path: str = "", *, suffix: str = ""
) -> tuple[str, Node]:
    """Build the shape of a rule, for one property if there is a path, with its name."""
    of_path = {"sh:path": Iri(f"ioa:{path}")} if path else {}
    kind = Iri("sh:PropertyShape" if path else "sh:NodeShape")
    said = {"sh:severity": _severity(rule), "sh:message": _message(rule)}
    return f"shapes:{rule.id}{suffix}", {"a": kind, **target, **of_path, **constraint, **said}


def _severity(rule: ProfileRule) -> Iri:
    return Iri("sh:Violation" if rule.always else "sh:Warning")


def _message(rule: ProfileRule) -> str:
    return f"{rule.id}: {rule.reason}"


def publish_core(namespace: Namespace = DEFAULT) -> Mapping[str, str]:
    """Generate every document that others need to use the core under a base IRI."""
    context = json.dumps({"@context": core_context(namespace)}, indent=2) + "\n"
    prefixes, nodes = {"ioa": namespace.terms, "owl": OWL, "rdfs": RDFS, "skos": SKOS}, _nodes(namespace)
    return {
        "core.ttl": write_turtle(prefixes, nodes),
        "core.jsonld": write_jsonld(prefixes, nodes),
        "context.jsonld": context,
        "shapes.ttl": profile_shapes(namespace),
        "registration-shapes.ttl": registration_shapes(namespace),
    }
