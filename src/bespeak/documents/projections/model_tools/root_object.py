"""The arguments of a tool: always an object with declared members, whatever the contract says."""

from __future__ import annotations

import re
from typing import Final

from bespeak.documents.projections.model_tools.document import (
    RENAMED,
    WRAPPED,
    Document,
    Node,
    alternatives,
    resolved,
)

_NAME: Final = "input"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST: Final = 64


def with_root_object(document: Document, names: re.Pattern[str]) -> Document:
    """Make the root a plain object whose members have names that match a pattern.

    A union is wrapped as the only member of an object. An argument that is not declared is a mistake, as for MCP.
    """
    root = {**resolved(document.root, document.definitions)}
    options = list(alternatives(root, document.definitions))
    if not any({"type"} & option.keys() for option in options):
        root = {key: value for key, value in root.items() if key != "anyOf"} | {"type": "object"}
    if root.get("type") != "object":
        wrapped = {"type": "object", "properties": {_NAME: root}, "required": [_NAME], WRAPPED: _NAME}
        return Document({**wrapped, "additionalProperties": False}, document.definitions)
    root.setdefault("properties", {})
    if "additionalProperties" not in root and "patternProperties" not in root:
        root["additionalProperties"] = False
    return Document(_renamed(root, names), document.definitions)


def _renamed(root: Node, names: re.Pattern[str]) -> Node:
    """Rename members that a provider refuses: `$top` becomes `top`, `filter[name]` becomes `filter_name`."""
    properties: Node = root["properties"]
    taken = {name for name in properties if names.fullmatch(name)}
    if len(taken) == len(properties):
        return root
    new: dict[str, str] = {}
    for name in properties:
        new[name] = name if name in taken else _free(_OTHER.sub("_", name).strip("_"), taken, names)
        taken.add(new[name])
    return {
        **root,
        "properties": {new[name]: part for name, part in properties.items()},
        "required": [new.get(name, name) for name in root.get("required", ())],
        RENAMED: [[short, name] for name, short in new.items() if short != name],
    }


def _free(plain: str, taken: set[str], names: re.Pattern[str]) -> str:
    plain = (plain if names.fullmatch(plain[:_LONGEST]) else f"arg_{plain}")[:_LONGEST].rstrip("_") or "arg"
    number, name = 1, plain
    while name in taken:
        number += 1
        name = f"{plain[: _LONGEST - 6]}_{number}"
    return name
