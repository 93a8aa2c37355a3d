"""An independent validator, pyshacl, with the published shapes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import pyshacl
from pyoxigraph import RdfFormat, parse, serialize
from rdflib import Graph, URIRef

from bespeak.extensions.semantics.ontology.contexts import LIMITS, inline_contexts, shipped_contexts
from bespeak.extensions.semantics.ontology.publication import (
    profile_shapes,
    publish_core,
    registration_shapes,
)

SOURCE = URIRef("http://www.w3.org/ns/shacl#sourceShape")


@cache
def _turtle(text: str) -> Graph:
    return Graph().parse(data=text, format="turtle")


def violated(document: Mapping[str, Any] | None, *ontologies: str, registration: bool = False) -> set[str]:
    """Return the ids of the rules that a document breaks in the light of ontologies in Turtle."""
    # The ontologies are part of the data: as `ont_graph`, their individuals would not count.
    data = Graph()
    for text in (publish_core()["core.ttl"], *ontologies):
        data += _turtle(text)
    if document is not None:
        inlined = inline_contexts(json.dumps(document).encode(), "document", shipped_contexts(), LIMITS)
        triples = serialize((quad.triple for quad in parse(inlined, RdfFormat.JSON_LD)), format=RdfFormat.N_TRIPLES)
        data.parse(data=triples, format="nt")
    shapes = _turtle(registration_shapes() if registration else profile_shapes())
    with warnings.catch_warnings():  # pyshacl uses what rdflib has deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        _, report, _ = pyshacl.validate(data, shacl_graph=shapes, inplace=True)
    return {str(shape).rpartition("#")[2].partition("-")[0] for shape in report.objects(None, SOURCE)}


def is_valid_shacl(shapes: str) -> bool:
    """Return True if shapes conform to the shapes of SHACL itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pyshacl.validate(Graph(), shacl_graph=_turtle(shapes), meta_shacl=True)
    except pyshacl.errors.ReportableRuntimeError:
        return False
    return True
