"""The core ontology in OWL, generated from its table (IoA 5)."""

from __future__ import annotations

from bespeak.contract.ontology.core import CLASSES, CORE_VERSION, PROPERTIES, CoreProperty, Level
from bespeak.contract.ontology.namespace import DEFAULT, OWL, RDFS, SKOS, Namespace
from bespeak.documents.ontology.node import Iri, Node, Value, write_jsonld, write_turtle

_NOTES: dict[Level, str] = {
    "required": "Required by IoA {}.",
    "recommended": "Recommended by IoA {}.",
    "optional": "Optional by IoA {}.",
    "example": "From the examples of IoA {}, which does not declare it.",
    "reading": "Fills a gap of IoA {}.",
}


def core_turtle(namespace: Namespace = DEFAULT) -> str:
    """Write the core ontology as Turtle."""
    return write_turtle(_prefixes(namespace), _nodes(namespace))


def core_jsonld(namespace: Namespace = DEFAULT) -> str:
    """Write the core ontology as JSON-LD."""
    return write_jsonld(_prefixes(namespace), _nodes(namespace))


def _prefixes(namespace: Namespace) -> dict[str, str]:
    return {"ioa": namespace.terms, "owl": OWL, "rdfs": RDFS, "skos": SKOS}


def _nodes(namespace: Namespace) -> dict[str, Node]:
    nodes: dict[str, Node] = {
        namespace.core: {
            "a": Iri("owl:Ontology"),
            "rdfs:label": "Core ontology for the interaction of agents",
            "owl:versionInfo": CORE_VERSION,
        }
    }
    for name, one in CLASSES.items():
        kind: Node = {"a": Iri("owl:Class")}
        nodes[f"ioa:{name}"] = {**kind, **_described(namespace, name, one.meaning, one.level, one.section)}
    for name, declared in PROPERTIES.items():
        described = _described(namespace, name, declared.meaning, declared.level, declared.section)
        nodes[f"ioa:{name}"] = {**_property(declared), **described}
    return nodes


def _described(namespace: Namespace, name: str, meaning: str, level: Level, section: str) -> Node:
    return {
        "rdfs:label": name,
        "rdfs:comment": meaning,
        "skos:note": _NOTES[level].format(section),
        "rdfs:isDefinedBy": Iri(namespace.core),
    }


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
