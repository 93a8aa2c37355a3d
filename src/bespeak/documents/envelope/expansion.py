"""The general path: pyld expands a payload, and the core members of its nodes are taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bespeak.contract.ontology.namespace import RDFS, Namespace, is_iri
from bespeak.contract.ontology.rules import PROFILE_SIZE, PROFILE_VALUE
from bespeak.contract.ontology.verdict import Violation
from bespeak.documents.envelope.limits import CONTEXT_LIMITS, MOST_SCHEMA
from bespeak.documents.envelope.members import LABEL, MEMBERS, Member, Node, Unfit
from bespeak.documents.envelope.term_table import quiet_processor, refuse_loading, violation_of
from bespeak.documents.ontology.contexts import Contexts, inline_contexts
from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.documents.ontology.rules import TOO_LARGE
from bespeak.text.diagnostics.printable import printable


def expand_nodes(document: Any, namespace: Namespace, contexts: Contexts) -> list[Any] | Violation:
    """Expand a payload of known size with pyld, or say why it cannot be."""
    from pyld.jsonld import JsonLdError, expand  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

    try:
        inlined = msgspec.json.decode(inline_contexts(msgspec.json.encode(document), "", contexts, CONTEXT_LIMITS))
        # Without a base, a relative IRI stays relative and is refused: pyld would invent a base for an empty one.
        with quiet_processor():
            expanded: list[Any] = expand(inlined, {"documentLoader": refuse_loading, "base": None})
    except DocumentRefused as refused:
        finding = refused.finding
        if finding.rule == TOO_LARGE.id:
            return Violation.of(PROFILE_SIZE, finding.pointer, "more", f"{CONTEXT_LIMITS.depth} levels")
        return violation_of(finding, document)
    except (JsonLdError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        reason = printable(str(getattr(error, "code", None) or error))[:200]
        return Violation.of(PROFILE_VALUE, "", document, f"JSON-LD that can be expanded ({reason})")
    return expanded


def core_node(expanded: Mapping[str, Any], kind: str, namespace: Namespace) -> Node:
    """Take the members of a class from an expanded node, as the fast path would."""
    node: Node = {}
    iri = expanded.get("@id")
    if iri is not None and not str(iri).startswith("_:"):
        node["@id"] = iri if is_iri(iri) else Unfit(iri)
    if expanded.get("@type"):
        node["@type"] = expanded["@type"]
    for name, values in expanded.items():
        member = MEMBERS[kind].get(namespace.name_of(name) if name != f"{RDFS}label" else LABEL)
        if member is not None and (member.name == LABEL) == (name == f"{RDFS}label"):
            node[member.name] = [_value(one, member, namespace) for one in _listed(values)]
    return node


def types_of(expanded: Any) -> Iterable[str]:
    """Return the types of an expanded node."""
    return expanded.get("@type", ()) if isinstance(expanded, dict) else ()


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _value(value: Any, member: Member, namespace: Namespace) -> Any:
    if not isinstance(value, dict) or "@list" in value:
        return Unfit(value)
    if member.value == "literal":
        return _literal(value)
    if "@value" in value:
        return Unfit(value["@value"])
    if member.value == "iri":
        iri = value.get("@id")
        return iri if isinstance(iri, str) and is_iri(iri) else Unfit(iri if iri is not None else value)
    return core_node(value, member.range, namespace)


def _literal(value: dict[str, Any]) -> Any:
    if "@value" not in value:
        return Unfit(value.get("@id", value))
    literal = value["@value"]
    if value.get("@type") == "@json":  # a schema
        text = msgspec.json.encode(literal, order="deterministic").decode()
        return text if len(text) <= MOST_SCHEMA else Unfit(text)
    return literal if isinstance(literal, str | int | float) and not isinstance(literal, bool) else Unfit(literal)
