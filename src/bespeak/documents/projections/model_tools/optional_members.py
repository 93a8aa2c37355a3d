"""Optional members of objects, and null: where a provider demands all members, null stands for one that is left out."""

from __future__ import annotations

from typing import Final

from bespeak.documents.projections.model_tools.document import OPTIONAL, UNFIT, Definitions, Node, is_nullable
from bespeak.documents.projections.model_tools.merging import TEXTS

_NULL: Final = {"type": "null"}
_SCALARS: Final = ("string", "integer", "number", "boolean")


def note_optional(node: Node, definitions: Definitions) -> Node:
    """Mark optional members that are never null: models send null all the same, and mean that it is left out."""
    return _marked(node, [name for name in _optional(node) if not is_nullable(node["properties"][name], definitions)])


def require_all(node: Node, definitions: Definitions) -> Node:
    """Require all members and let optional ones be null.

    If null is a value of an optional member, it can stand for a missing member only if that is its default.
    """
    if node.get("type") != "object":
        return node
    properties = dict(node.get("properties", {}))
    for name in _optional(node):
        part = properties[name]
        if not is_nullable(part, definitions):
            properties[name] = _or_null(part)
        elif part.get("default", False) is not None and part.keys() - TEXTS:
            properties[name] = {**part, UNFIT: "null is a value, so it cannot stand for a missing member"}
    return _marked({**node, "properties": properties, "required": list(properties)}, _optional(node))


def join_null(node: Node, _: Definitions) -> Node:
    """Turn the union of null and one scalar type into a list of types: shorter, and what models have seen most."""
    options = node.get("anyOf", ())
    if len(options) != 2 or _NULL not in options or node.keys() - TEXTS != {"anyOf"}:
        return node
    (other,) = [option for option in options if option != _NULL] or [_NULL]
    if other.get("type") not in _SCALARS or "enum" in other:
        return node
    texts = {key: value for key, value in node.items() if key != "anyOf"}
    return {**other, "type": [other["type"], "null"], **texts}


def _optional(node: Node) -> list[str]:
    required = set(node.get("required", ()))
    return [name for name in node.get("properties", ()) if name not in required]


def _marked(node: Node, names: list[str]) -> Node:
    return {**node, OPTIONAL: names} if names else node


def _or_null(node: Node) -> Node:
    """Return the union of a node and null; texts are those of the union."""
    texts = {key: value for key, value in node.items() if key in TEXTS}
    bare = {key: value for key, value in node.items() if key not in TEXTS}
    options = bare.pop("anyOf", None)
    if options is None:
        return {"anyOf": [bare, _NULL], **texts}
    return {**bare, "anyOf": [*options, _NULL], **texts}
