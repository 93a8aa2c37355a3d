"""References without anything beside them."""

from __future__ import annotations

from typing import Final

from bespeak.documents.projections.model_tools.document import (
    Definitions,
    Document,
    Node,
    applied,
    named,
    nodes,
)
from bespeak.documents.projections.model_tools.recursion import circular

_LARGEST: Final = 100
"""Maximum nodes of a definition that is copied to where it is used."""
_NESTING: Final = frozenset({"$ref", "anyOf", "properties", "items", "prefixItems", "additionalProperties"})


def inline_leaves(node: Node, definitions: Definitions) -> Node:
    """Replace a reference to a definition without parts by the definition: a name for it costs more than it saves."""
    name = named(node)
    if name is None or not _NESTING.isdisjoint(definitions[name]):
        return node
    return {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}


def wrap_described(node: Node, _: Definitions) -> Node:
    """Put a reference that has a description into a union of one, beside which a description is allowed."""
    if "$ref" not in node or len(node) == 1:
        return node
    return {"anyOf": [{"$ref": node["$ref"]}], **{key: value for key, value in node.items() if key != "$ref"}}


def inline_described(document: Document) -> Document:
    """Copy definitions to where they have a description of their own; leave out that of a large or recursive one."""
    circles = circular(document.definitions)
    done: dict[str, Node] = {}

    def inlined(node: Node, definitions: Definitions) -> Node:
        name = named(node)
        if name is None or len(node) == 1:
            return node
        if name in circles or not _is_small(name, definitions):
            return {"$ref": node["$ref"]}
        if name not in done:
            done[name] = applied(inlined, definitions[name], definitions)
        return {**done[name], **{key: value for key, value in node.items() if key != "$ref"}}

    return document.apply(inlined)


def _is_small(name: str, definitions: Definitions) -> bool:
    """Return True if a definition, with everything that it refers to, has few nodes."""
    waiting, count = [definitions[name]], 0
    while waiting and count <= _LARGEST:
        for node in nodes(waiting.pop()):
            count += 1
            target = named(node)
            if target is not None:
                waiting.append(definitions[target])
            if count > _LARGEST:
                break
    return count <= _LARGEST
