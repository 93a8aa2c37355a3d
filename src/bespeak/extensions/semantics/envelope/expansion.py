"""JSON-LD of semantic payloads: a plain one with a known context is read in one walk; pyld expands all others."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import CLASSES, PROPERTIES, RDFS, Namespace, Value, is_iri
from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.ontology.contexts import Contexts, DocumentRefused, OntologyLimits, inline_contexts
from bespeak.extensions.semantics.profile import Violation
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable
from bespeak.text.source.pointer import value_at

MOST_REGISTRATION: Final = 1024 * 1024  # bytes of a capability registration as JSON
MOST_DEPTH: Final = 48  # nesting of objects and lists, schemas of inputs included
MOST_VALUES: Final = 250  # values of one member, such as references or term bindings
MOST_TEXT: Final = 1_000  # characters of a term, a version or a language
MOST_SCHEMA: Final = 64 * 1024  # characters of an input or output constraint
CONTEXT_LIMITS: Final = OntologyLimits(size=4 * MOST_REGISTRATION, depth=MOST_DEPTH, contexts=8, context_terms=200)

Node = dict[str, Any]
"""Values by member name: IRIs, literals, other nodes, or `BadValue`; `@id` is the IRI of the node, `@type` its type."""


class BadValue(msgspec.Struct, frozen=True):
    """Value of another kind than the member has."""

    value: Any


class Member(msgspec.Struct, frozen=True):
    name: str
    value: Value
    range: str  # class of the nodes that are its values


LABEL: Final = "label"  # member for names, which the context maps to rdfs:label
MEMBERS: Final[Mapping[str, Mapping[str, Member]]] = {
    name: {one.name: Member(one.name, one.value, one.range) for one in PROPERTIES.values() if name in one.domains}
    | {LABEL: Member(LABEL, "literal", "")}
    for name in CLASSES
}
_GLOBAL: Final = ("@vocab", "@base", "@language", "@direction")  # entries that change the meaning of every value
_PLAIN: Final = frozenset({"reverse", "protected", "_prefix", "_term_has_colon", "@id", "@type", "@container"})

Slots = Mapping[str, tuple[str, str, Any]]
"""By the name in the document: member, kind of its values (`@id`, `@type` for keywords), slots of their class."""


class TermTable(msgspec.Struct, frozen=True):
    """The meaning of a context, as far as the fast path can use it."""

    slots: Mapping[str, Slots]  # slots by class
    prefixes: Mapping[str, str]
    types: Mapping[str, str | None]  # IRIs of the terms that a type may be written with; None for others
    expanded: dict[str, str] = {}  # IRIs that were expanded before; bounded


class Compiled(msgspec.Struct, frozen=True):
    """Result of compiling a context: refused, usable by pyld only, or with a table for the fast path."""

    violations: tuple[Violation, ...] = ()
    table: TermTable | None = None


def compile_context(context: Any, namespace: Namespace, contexts: Contexts) -> Compiled:
    """Compile the value of `@context`; pyld defines what it means, without a network."""
    from pyld.jsonld import JsonLdError, JsonLdProcessor  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

    document = {"@context": context}
    try:
        inlined = msgspec.json.decode(inline_contexts(msgspec.json.encode(document), "", contexts, CONTEXT_LIMITS))
    except DocumentRefused as refused:
        return Compiled((violation_of(refused.finding, document),))
    processor = JsonLdProcessor()
    options = {"documentLoader": refuse_loading, "processingMode": "json-ld-1.1", "base": None}
    try:
        with warnings.catch_warnings(action="ignore"):  # of pyld, which would be exceptions where warnings are errors
            empty = processor.process_context(None, None, options)
            active: Mapping[str, Any] = processor.process_context(empty, inlined, options)
    except (JsonLdError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        fault = printable(str(getattr(error, "code", None) or error))[:200]
        return Compiled((Violation.of(rules.CONTEXT, "/@context", fault),))
    terms: Mapping[str, Any] = active["mappings"]
    if not any(one is not None and str(one.get("@id")).startswith(namespace.terms) for one in terms.values()):
        return Compiled((Violation.of(rules.CONTEXT, "/@context", context),))
    return Compiled() if any(name in active for name in _GLOBAL) else Compiled((), _table(terms, namespace))


def violation_of(finding: Diagnostic, document: Any) -> Violation:
    if finding.rule == rules.REMOTE_CONTEXT.id and not finding.pointer.endswith("/@import"):
        return Violation.of(rules.UNKNOWN_CONTEXT, finding.pointer, value_at(document, finding.pointer))
    return Violation(finding.rule, finding.pointer, None, f"{finding.pointer}: {finding.message}", finding.message)


def refuse_loading(url: str, options: Any) -> Any:
    """Refuse to load a document: every context is in the document before pyld sees it."""
    from pyld.jsonld import JsonLdError  # noqa: PLC0415 - an extra

    raise JsonLdError(f"{url} is not fetched", "jsonld.LoadDocumentError", code="loading document failed")


def _table(terms: Mapping[str, Any], namespace: Namespace) -> TermTable:
    plain = {term: one for term, one in terms.items() if one and not one["reverse"] and _PLAIN.issuperset(one)}
    plain = {term: one for term, one in plain.items() if one.get("@container") in (None, [], ["@set"])}
    names = {namespace(name): name for members in MEMBERS.values() for name in members} | {f"{RDFS}label": LABEL}
    slots: dict[str, dict[str, tuple[str, str, Any]]] = {name: {} for name in MEMBERS}
    for kind, members in MEMBERS.items():
        found = slots[kind]
        found["@id"], found["@type"] = ("@id", "@id", None), ("@type", "@type", None)
        for term, one in plain.items():
            iri, coerced = one["@id"], one.get("@type")
            member = members.get(names.get(iri, ""))
            if member is not None and coerced == (None if member.value == "literal" else "@id"):
                found[term] = (member.name, member.value, slots.get(member.range))
            elif iri in ("@id", "@type") and coerced is None:
                found[term] = (iri, iri, None)
    return TermTable(
        slots=slots,
        prefixes={term: one["@id"] for term, one in terms.items() if one and one["_prefix"]},
        types={term: one["@id"] if one and is_iri(one["@id"] or "") else None for term, one in terms.items()},
    )


def expand_nodes(document: Any, namespace: Namespace, contexts: Contexts) -> list[Any] | Violation:
    """Expand a payload of known size with pyld, or say why it cannot be."""
    from pyld.jsonld import JsonLdError, expand  # noqa: PLC0415 - an extra

    try:
        inlined = msgspec.json.decode(inline_contexts(msgspec.json.encode(document), "", contexts, CONTEXT_LIMITS))
        # Without a base, a relative IRI stays relative and is refused: pyld would invent a base for an empty one.
        with warnings.catch_warnings(action="ignore"):
            expanded: list[Any] = expand(inlined, {"documentLoader": refuse_loading, "base": None})
    except DocumentRefused as refused:
        finding = refused.finding
        if finding.rule == rules.TOO_LARGE.id:
            return Violation.of(rules.PROFILE_SIZE, finding.pointer, "more", f"{CONTEXT_LIMITS.depth} levels")
        return violation_of(finding, document)
    except (JsonLdError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        reason = printable(str(getattr(error, "code", None) or error))[:200]
        return Violation.of(rules.PROFILE_VALUE, "", document, f"JSON-LD that can be expanded ({reason})")
    return expanded


def core_node(expanded: Mapping[str, Any], kind: str, namespace: Namespace) -> Node:
    """Take the members of a class from an expanded node, as the fast path would."""
    node: Node = {}
    iri = expanded.get("@id")
    if iri is not None and not str(iri).startswith("_:"):
        node["@id"] = iri if is_iri(iri) else BadValue(iri)
    if expanded.get("@type"):
        node["@type"] = expanded["@type"]
    for name, values in expanded.items():
        member = MEMBERS[kind].get(namespace.name_of(name) if name != f"{RDFS}label" else LABEL)
        if member is not None and (member.name == LABEL) == (name == f"{RDFS}label"):
            listed = values if isinstance(values, list) else [values]
            node[member.name] = [_value(one, member, namespace) for one in listed]
    return node


def types_of(expanded: Any) -> Iterable[str]:
    return expanded.get("@type", ()) if isinstance(expanded, dict) else ()


def _value(value: Any, member: Member, namespace: Namespace) -> Any:
    if not isinstance(value, dict) or "@list" in value:
        return BadValue(value)
    if member.value == "literal":
        return _literal(value)
    if "@value" in value:
        return BadValue(value["@value"])
    if member.value == "iri":
        iri = value.get("@id")
        return iri if isinstance(iri, str) and is_iri(iri) else BadValue(iri if iri is not None else value)
    return core_node(value, member.range, namespace)


def _literal(value: dict[str, Any]) -> Any:
    if "@value" not in value:
        return BadValue(value.get("@id", value))
    literal = value["@value"]
    if value.get("@type") == "@json":  # a schema
        text = msgspec.json.encode(literal, order="deterministic").decode()
        return text if len(text) <= MOST_SCHEMA else BadValue(text)
    return literal if isinstance(literal, str | int | float) and not isinstance(literal, bool) else BadValue(literal)


_MOST_KEPT: Final = 128  # IRIs that a table keeps, and the characters that each may have to be kept
_LONGEST_KEPT: Final = 200


class NotPlain(Exception):
    """The payload needs pyld. Everything that is not known to be plain raises it, so that both paths agree."""


def read_plain(document: Mapping[str, Any], table: TermTable, kind: str) -> Node:
    """Read a node of a class, or raise NotPlain."""
    node = _node(document, table, table.slots[kind], 0)
    if len(node) <= ("@id" in node):  # JSON-LD drops a node that says nothing
        raise NotPlain
    return node


def _node(document: Any, table: TermTable, slots: Slots, depth: int) -> Node:
    if type(document) is not dict or depth > MOST_DEPTH:
        raise NotPlain
    node: Node = {}
    for key, value in document.items():
        slot = slots.get(key)
        if slot is None:
            if key == "@context" and not depth:
                continue
            raise NotPlain
        name, kind, inner = slot
        if name in node:  # two names of one member
            raise NotPlain
        if type(value) is list and kind[0] != "@":
            node[name] = _several(value, table, slot, depth)
        elif kind == "iri":
            node[name] = [expand_iri(value, table)]
        elif kind == "literal":
            node[name] = [_plain_literal(value, table)]
        elif kind == "node":
            node[name] = [_node(value, table, inner, depth + 1)]
        else:
            node[name] = expand_iri(value, table) if kind == "@id" else [_type(value, table)]
    return node


def _several(values: list[Any], table: TermTable, slot: tuple[str, str, Any], depth: int) -> list[Any]:
    if len(values) > MOST_VALUES:
        raise NotPlain
    _, kind, inner = slot
    if kind == "node":
        return [_node(one, table, inner, depth + 1) for one in values]
    read = expand_iri if kind == "iri" else _plain_literal
    return [read(one, table) for one in values]


def _plain_literal(value: Any, _: TermTable) -> Any:
    kind = type(value)
    if (len(value) <= MOST_TEXT) if kind is str else (kind is int or kind is float):
        return value
    raise NotPlain


def _type(value: Any, table: TermTable) -> str:
    if type(value) is not str:
        raise NotPlain
    if value not in table.types:
        return expand_iri(value, table)
    iri = table.types[value]
    if iri is None:
        raise NotPlain
    return iri


def expand_iri(value: Any, table: TermTable) -> str:
    """Expand a compact or absolute IRI, or raise NotPlain."""
    if type(value) is not str:
        raise NotPlain
    known = table.expanded
    iri = known.get(value)
    if iri is not None:
        return iri
    prefix, colon, rest = value.partition(":")
    space = table.prefixes.get(prefix) if colon and rest[:2] != "//" else None
    iri = value if space is None else space + rest
    if not is_iri(iri):
        raise NotPlain
    if len(value) <= _LONGEST_KEPT:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[value] = iri
    return iri
