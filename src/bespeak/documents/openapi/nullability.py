"""The implied type of a schema, and whether null is allowed."""

from __future__ import annotations

from typing import Any, Final

WORDS: Final = frozenset({"title", "description", "deprecated", "default"})
"""Keywords that describe a value without restricting it."""
_COMPOSING: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})


def typed(made: dict[str, Any]) -> dict[str, Any]:
    """Add the type that properties or items imply, if the author omitted it."""
    if "type" in made or not made.keys().isdisjoint(_COMPOSING | {"enum", "const"}):
        return made
    if not made.keys().isdisjoint({"properties", "additionalProperties", "patternProperties", "required"}):
        return {"type": "object", **made}
    if not made.keys().isdisjoint({"items", "prefixItems"}):
        return {"type": "array", **made}
    return made


def with_null(made: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    """Allow null in a schema without the value null, which an endpoint file cannot hold."""
    values = made.get("enum")
    if values is not None and None in values:
        nullable = True
        kept = [value for value in values if value is not None]
        if not kept:
            return {**{name: made[name] for name in made if name in WORDS}, "type": "null"}
        made = {**made, "enum": kept}
    if not nullable:
        return made
    kind = made.get("type")
    if "enum" not in made and "const" not in made and made.keys().isdisjoint(_COMPOSING):
        if kind is None:
            return made
        kinds = kind if isinstance(kind, list) else [kind]
        return {**made, "type": [*kinds, "null"]} if "null" not in kinds else made
    if isinstance(kind, list) and "null" in kind:
        rest = [name for name in kind if name != "null"]
        made = {**made, "type": rest[0] if len(rest) == 1 else rest} if rest else made
    words = {name: made[name] for name in made if name in WORDS}
    bare = {name: value for name, value in made.items() if name not in WORDS}
    if bare.keys() == {"anyOf"}:
        null = {"type": "null"}
        return {**words, "anyOf": bare["anyOf"] if null in bare["anyOf"] else [*bare["anyOf"], null]}
    return {**words, "anyOf": [bare, {"type": "null"}]} if bare else words
