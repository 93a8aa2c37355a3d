"""The fast path: one walk over a payload whose context is known, for the plain forms that senders use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.ontology.namespace import is_iri
from bespeak.documents.envelope.limits import MOST_DEPTH, MOST_TEXT, MOST_VALUES
from bespeak.documents.envelope.members import Node
from bespeak.documents.envelope.term_table import Slots, TermTable

_MOST_KEPT: Final = 128
"""IRIs that a table keeps, and the characters that each may have to be kept."""
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
            node[name] = [_literal(value, table)]
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
    read = expand_iri if kind == "iri" else _literal
    return [read(one, table) for one in values]


def _literal(value: Any, _: TermTable) -> Any:
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
