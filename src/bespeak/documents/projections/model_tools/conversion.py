"""The schema of a tool for one provider, from the input schema of an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bespeak.documents.projections.model_tools.document import Document, Node
from bespeak.documents.projections.model_tools.hoisting import TooComplexError, hoist
from bespeak.documents.projections.model_tools.merging import Merger
from bespeak.documents.projections.model_tools.recursion import open_unions
from bespeak.documents.projections.model_tools.references_alone import inline_leaves
from bespeak.documents.projections.model_tools.root_object import with_root_object
from bespeak.documents.projections.model_tools.single_types import with_single_types
from bespeak.documents.projections.model_tools.strictness import faults
from bespeak.documents.projections.model_tools.style import STYLES


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted schema, with what is needed to convert values back."""

    document: Document
    """The schema with marks."""
    schema: Node
    strict: bool
    reasons: tuple[str, ...] = ()
    """Why the schema is not strict although that was wanted."""


def convert(schema: Mapping[str, Any], style: str, *, strict: bool = True) -> Conversion:
    """Convert a schema for a provider, as a strict one if that is wanted and no value is lost."""
    rules = STYLES[style]
    try:
        raw = hoist(schema)
        plain = with_single_types(Merger(raw.definitions).document(raw.root))
    except TooComplexError:
        return _fallback("the schema is too deep or too large")
    base = with_root_object(open_unions(plain).apply(inline_leaves), rules.arguments).pruned()
    reasons: tuple[str, ...] = ()
    if strict and rules.strict is not None:
        made = _run(base, rules.strict)
        reasons = tuple(faults(made, rules.limits))
        if not reasons:
            return Conversion(made, made.schema(), strict=True)
    made = _run(base, rules.plain)
    return Conversion(made, made.schema(), strict=False, reasons=reasons)


def _run(document: Document, steps: Any) -> Document:
    for step in steps:
        document = step(document)
    return document.pruned()


def _fallback(reason: str) -> Conversion:
    root = {
        "type": "object",
        "properties": {},
        "additionalProperties": True,
        "description": "The arguments are described by the documentation of the service.",
    }
    document = Document(root, {})
    return Conversion(document, dict(root), strict=False, reasons=(reason,))
