"""The base JSON-LD context, generated from the table of the core ontology (IoA 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bespeak.contract.ontology.core import CLASSES, PROPERTIES
from bespeak.contract.ontology.namespace import DEFAULT, RDFS, Namespace


def core_context(namespace: Namespace = DEFAULT) -> dict[str, Any]:
    """Build the value of `@context` that the base context stands for.

    Its terms are protected: a context behind it extends the terms and cannot redefine them.
    """
    context: dict[str, Any] = {
        "@version": 1.1,
        "@protected": True,
        "ioa": {"@id": namespace.terms, "@prefix": True},
        "id": "@id",
        "type": "@type",
        "label": f"{RDFS}label",
    }
    context |= {name: f"ioa:{name}" for name in CLASSES}
    for name, one in PROPERTIES.items():
        definition = {"@id": f"ioa:{name}"}
        if one.is_object:
            definition["@type"] = "@id"
        if one.many:
            definition["@container"] = "@set"
        context[name] = definition if len(definition) > 1 else f"ioa:{name}"
    return context


@lru_cache(maxsize=8)
def shipped_contexts(namespace: Namespace = DEFAULT) -> Mapping[str, Any]:
    """Return the contexts that are part of this package, by their IRIs."""
    return {namespace.context: core_context(namespace)}
