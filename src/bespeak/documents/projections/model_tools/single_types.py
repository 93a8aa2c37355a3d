"""Nodes with one type each: unions for lists of types and for values of several types, types that keywords imply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.subschemas import with_children
from bespeak.documents.projections.model_tools.document import NOTHING, SAYS, UNFIT, Document, Node, types
from bespeak.documents.projections.model_tools.merging import TEXTS
from bespeak.documents.projections.model_tools.sentences import sentence

_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding"),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "boolean": (),
    "null": (),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "object": (
        *("properties", "required", "additionalProperties", "patternProperties"),
        *("minProperties", "maxProperties"),
    ),
}
_IMPLYING: Final = ("object", "array")
"""Types that keywords imply if none is named, as everybody reads them. A minimum alone accepts texts too."""


def with_single_types(document: Document) -> Document:
    """Give every node one type, or none if it accepts everything."""
    return Document(_single(document.root), {name: _single(node) for name, node in document.definitions.items()})


def _single(node: Node) -> Node:
    node = with_children(_settled(node), _single)
    texts = {key: value for key, value in node.items() if key in TEXTS}
    if node == NOTHING:
        return {SAYS: ["No value is accepted here."], UNFIT: "no value is accepted"}
    if "$ref" in node or "anyOf" in node:
        return _flattened(node)
    if "enum" in node:
        return _united(_enumerations(node), texts)
    names = [name for name in types(node) if name in _KEYWORDS] or [
        name for name in _IMPLYING if not node.keys().isdisjoint(_KEYWORDS[name])
    ]
    if not names:
        said = [told for key in sorted(node.keys() - TEXTS - {"type"}) for told in sentence(key, node[key])]
        texts = {**texts, SAYS: [*texts.get(SAYS, ()), *said]} if said else texts
    return _united([_of_type(name, node) for name in names], texts)


def _settled(node: Node) -> Node:
    """Replace parts that accept nothing by what that means for the node around them."""
    made = dict(node)
    if made.get("additionalProperties") == NOTHING:
        made["additionalProperties"] = False
    if "patternProperties" in made:
        kept = {key: part for key, part in made.pop("patternProperties").items() if part != NOTHING}
        made |= {"patternProperties": kept} if kept else {}
    first: list[Node] = made.get("prefixItems", [])
    ends = next((at for at, part in enumerate(first) if part == NOTHING), None)
    if ends is not None:
        made["prefixItems"] = first = first[:ends]
        made["items"] = NOTHING
    if made.get("items") == NOTHING:
        del made["items"]
        made["maxItems"] = min(made.get("maxItems", len(first)), len(first))
    if not first:
        made.pop("prefixItems", None)
    return made


def _of_type(name: str, node: Node) -> Node:
    return {"type": name, **{key: node[key] for key in _KEYWORDS[name] if key in node}}


def _united(options: list[Node], texts: Node) -> Node:
    """Return the union of options, the only option, or a node that accepts everything."""
    if len(options) == 1:
        said = [*texts.get(SAYS, ()), *options[0].get(SAYS, ())]
        return {**options[0], **texts, **({SAYS: said} if said else {})}
    return {"anyOf": options, **texts} if options else texts


def _flattened(node: Node) -> Node:
    """Take the alternatives of unions inside a union into it, if they have no texts of their own."""
    if "anyOf" not in node:
        return node
    options: list[Node] = []
    for option in node["anyOf"]:
        options += option["anyOf"] if option.keys() == {"anyOf"} else [option]
    return {**node, "anyOf": list({repr(option): option for option in options}.values())}


def _enumerations(node: Node) -> list[Node]:
    """Return listed values by type. Values that are lists or objects are only described."""
    groups: dict[str, list[Any]] = {}
    allowed = types(node)
    for value in node["enum"]:
        kind = _kind(value)
        if not allowed or kind in allowed or (kind == "integer" and "number" in allowed):
            groups.setdefault(kind, []).append(value)
    if "number" in groups and "integer" in groups:
        groups["number"] = [value for value in node["enum"] if _kind(value) in ("integer", "number")]
        del groups["integer"]
    return [_enumeration(kind, values) for kind, values in groups.items()]


def _enumeration(kind: str, values: list[Any]) -> Node:
    if kind in ("array", "object"):
        return {"type": kind, SAYS: list(sentence("enum", values))}
    if kind == "null" or (kind == "boolean" and len(set(values)) > 1):
        return {"type": kind}
    return {"type": kind, "enum": list(dict.fromkeys(values))}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    kinds: Mapping[type, str] = {int: "integer", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")
