"""Published documents of the core ontology, by file name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.documents.ontology.core_context import core_context
from bespeak.documents.ontology.core_ontology import core_jsonld, core_turtle
from bespeak.documents.ontology.shapes import profile_shapes, registration_shapes


def publish_core(namespace: Namespace = DEFAULT) -> Mapping[str, str]:
    """Generate every document that others need to use the core under a base IRI."""
    context = json.dumps({"@context": core_context(namespace)}, indent=2) + "\n"
    return {
        "core.ttl": core_turtle(namespace),
        "core.jsonld": core_jsonld(namespace),
        "context.jsonld": context,
        "shapes.ttl": profile_shapes(namespace),
        "registration-shapes.ttl": registration_shapes(namespace),
    }
