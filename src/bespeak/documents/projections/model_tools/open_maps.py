"""Objects with undeclared members, as lists of pairs: providers' strict modes know only declared members."""

from __future__ import annotations

from typing import Final

from bespeak.documents.projections.model_tools.document import MAP, REST, SAYS, UNFIT, Definitions, Node

_NAME: Final = "other_members"
_PAIRS: Final = "Pairs of key and value, one for each member."


def list_members(node: Node, _: Definitions) -> Node:
    """Turn an object with undeclared members into a list of pairs, or its undeclared members if others are declared.

    An object that does not say whether it has undeclared members has none, unless it declares none at all.
    """
    if node.get("type") != "object":
        return node
    value = _value(node)
    if value is None:
        return node
    if not value:
        return {**node, UNFIT: "an object takes members of any kind"}
    made = {key: part for key, part in node.items() if key not in ("additionalProperties", "patternProperties")}
    pairs = {"type": "array", "items": _pair(value), SAYS: [_PAIRS, *_keys(node)]}
    if "properties" not in node:
        counts = {"minProperties": "minItems", "maxProperties": "maxItems"}
        limits = {new: node[old] for old, new in counts.items() if old in node}
        texts = {key: part for key, part in made.items() if key not in ("type", "required", *counts)}
        return {**texts, **pairs, **limits, MAP: True, SAYS: [*node.get(SAYS, ()), *pairs[SAYS]]}
    name = _NAME
    while name in made["properties"]:
        name += "_"
    made["properties"] = {**made["properties"], name: pairs}
    made["required"] = [*made.get("required", ()), name]
    return {**made, REST: name}


def without_patterns(node: Node, _: Definitions) -> Node:
    """Describe members whose names match a pattern as undeclared members."""
    if "patternProperties" not in node:
        return node
    made = {key: part for key, part in node.items() if key != "patternProperties"}
    return {**made, "additionalProperties": _value(node), SAYS: [*node.get(SAYS, ()), *_keys(node)]}


def _value(node: Node) -> Node | None:
    """Return the schema of undeclared members, an empty one if they may be anything; None if there are none."""
    others, patterns = node.get("additionalProperties"), node.get("patternProperties", {})
    if others is None:
        others = False if node.get("properties") or patterns else {}
    options = [*patterns.values(), *([] if others is False else [others])]
    if not options:
        return None
    if {} in options:
        return {}
    return options[0] if len(options) == 1 else {"anyOf": options}


def _pair(value: Node) -> Node:
    return {
        "type": "object",
        "properties": {"key": {"type": "string"}, "value": value},
        "required": ["key", "value"],
        "additionalProperties": False,
    }


def _keys(node: Node) -> list[str]:
    patterns = node.get("patternProperties")
    return [f"Keys match {' or '.join(patterns)}."] if patterns and node.get("additionalProperties") is False else []
