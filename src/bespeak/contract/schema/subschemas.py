"""Subschemas: the keywords that hold them, walks over them, local references, and copies for other places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from bespeak.text.source.pointer import unescaped, value_at

MAX_DEPTH: Final = 128  # limit of JSON levels: far beyond practical use, far below a native stack
DATA_KEYWORDS: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose content is data: a `$ref` in it is not a reference."""
NAMING_KEYWORDS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose keys are names: a `$ref` among them is a name."""
COMPOSING: Final = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if"})
"""Keywords that apply another schema to the same value."""


def nodes(schema: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Yield every object in schema position with its place. A loop with a stack: depth costs memory, not frames."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), schema)]
    while waiting:
        at, node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(((*at, index), item) for index, item in enumerate(node))
        elif isinstance(node, dict):
            yield at, node
            if len(at) > MAX_DEPTH:
                return
            for name, value in node.items():
                if name in NAMING_KEYWORDS and isinstance(value, dict):
                    waiting.extend(((*at, name, key), item) for key, item in value.items())
                elif name not in DATA_KEYWORDS:
                    waiting.append(((*at, name), value))


def children(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for key, value in schema.items():
        if key in DATA_KEYWORDS:
            continue
        if isinstance(value, dict):
            found += [part for part in value.values() if isinstance(part, dict)] if key in NAMING_KEYWORDS else [value]
        elif isinstance(value, list):
            found += [part for part in value if isinstance(part, dict)]
    return found


def with_children(schema: Mapping[str, Any], change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Copy a schema with `change` applied to each schema directly below it."""

    def changed(part: Any) -> Any:
        return change(part) if isinstance(part, dict) else part

    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in DATA_KEYWORDS:
            made[key] = value
        elif isinstance(value, dict) and key in NAMING_KEYWORDS:
            made[key] = {name: changed(part) for name, part in value.items()}
        else:
            made[key] = [changed(part) for part in value] if isinstance(value, list) else changed(value)
    return made


REFERENCES: Final = ("$ref", "$dynamicRef")


def local_pointer(reference: object) -> str | None:
    """Return the JSON Pointer of a local reference, decoded before it is split (RFC 6901 6), or None."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    return fragment if not fragment or fragment.startswith("/") else None


def target(reference: object, root: object, default: Any = None) -> Any:
    """Return what a local reference names in the document `root`; `default` if it names nothing there."""
    at = local_pointer(reference)
    return default if at is None else value_at(root, at, default)


def resolve(schema: object, root: object, *, most: int) -> Mapping[str, Any]:
    """Follow `$ref` at most `most` times; keywords beside it override its target, and a dangling one adds nothing."""
    found: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    for _ in range(most):
        reference = found.get("$ref")
        if not isinstance(reference, str):
            break
        named = target(reference, root)
        beside = {key: value for key, value in found.items() if key != "$ref"}
        found = {**named, **beside} if isinstance(named, Mapping) else beside
    return found


def inline(schema: Any, root: object, *, most: int = 8) -> Any:
    """Replace local references of a schema, its parts and alternatives; below `most` levels they stay."""
    if not isinstance(schema, Mapping) or not most:
        return schema
    if target(schema.get("$ref"), root) is not None:
        return inline(resolve(schema, root, most=1), root, most=most - 1)
    found = dict(schema)
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            found[keyword] = [inline(option, root, most=most - 1) for option in schema[keyword]]
    return found


def rewrite(node: Any, change: Callable[[str], str | None]) -> Any:
    """Copy a schema with every reference changed; one that becomes None is left out."""
    if isinstance(node, list):
        return [rewrite(item, change) for item in node]
    if not isinstance(node, Mapping):
        return node
    copied: dict[str, Any] = {}
    for key, value in node.items():
        if key in REFERENCES and isinstance(value, str):
            reference = change(value)
            if reference is not None:
                copied[key] = reference
        elif key == "discriminator":
            copied[key] = _remapped(value, change)
        elif key in DATA_KEYWORDS:
            copied[key] = value
        elif key in NAMING_KEYWORDS and isinstance(value, Mapping):
            copied[key] = {name: rewrite(item, change) for name, item in value.items()}
        else:
            copied[key] = rewrite(value, change)
    return copied


def _remapped(discriminator: Any, change: Callable[[str], str | None]) -> Any:
    """Copy a discriminator of OpenAPI with its references changed; names of components, without `#`, stay."""
    mapping = discriminator.get("mapping") if isinstance(discriminator, Mapping) else None
    if not isinstance(mapping, Mapping):
        return discriminator
    moved = {name: change(place) if str(place).startswith("#") else place for name, place in mapping.items()}
    return {**discriminator, "mapping": {name: place for name, place in moved.items() if place is not None}}


_LISTS: Final = ("allOf", "anyOf", "oneOf")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
Place = tuple[str | int, ...]


class Steps:
    """The nodes of a schema, and the steps between those that check the same value."""

    def __init__(self, nodes: list[tuple[Place, dict[str, Any]]]) -> None:
        self._nodes = nodes
        self._root = nodes[0][1]
        resources = {at: node for at, node in nodes if at and "$id" in node}
        self._base: dict[int, dict[str, Any]] = {}  # enclosing schema with an `$id`, by the id of a node
        if resources:
            for at, node in nodes:
                around = next((resources[at[:end]] for end in range(len(at), 0, -1) if at[:end] in resources), None)
                if around is not None:
                    self._base[id(node)] = around
        self._anchors = {
            f"#{node[key]}": node for _, node in nodes for key in _ANCHORS if isinstance(node.get(key), str)
        }

    def all(self) -> Iterator[dict[str, Any]]:
        return (node for _, node in self._nodes)

    def of(self, node: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the schemas that check the same value as a node does."""
        found: list[Any] = [item for key in _LISTS if isinstance(node.get(key), list) for item in node[key]]
        found += [node[key] for key in ("not", "if", "then", "else") if key in node]
        dependent = node.get("dependentSchemas")
        found += dependent.values() if isinstance(dependent, dict) else ()
        found += [self._target(node[key], node) for key in REFERENCES if key in node]
        return [step for step in found if isinstance(step, dict)]

    def _target(self, reference: Any, node: Mapping[str, Any]) -> Any:
        if not isinstance(reference, str):
            return None
        here: Any = self._base.get(id(node), self._root)
        if reference in ("", "#"):
            return here
        return target(reference, here) if reference.startswith("#/") else self._anchors.get(reference)


_COMPOSING: Final = COMPOSING | {"dependentSchemas"}  # `additionalProperties: false` would forbid their fields


def closing_keyword(schema: Mapping[str, Any]) -> str:
    """Return the keyword that closes a schema, if set to false, without forbidding declared fields."""
    return "unevaluatedProperties" if _COMPOSING & schema.keys() else "additionalProperties"


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema refuses undeclared fields. An `additionalProperties` schema counts as declaring them."""
    if "additionalProperties" in schema:
        return schema["additionalProperties"] is False
    return schema.get("unevaluatedProperties") is False


def closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Close a schema that does not say whether other fields are allowed: one that nobody reads is a mistake."""
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    return {**schema, closing_keyword(schema): False}


Parts = tuple[str, ...]  # place inside a schema, as the parts of its JSON Pointer
_NAMES: Final = frozenset({"$id", "$anchor", "$dynamicAnchor", "$schema"})
"""Keywords that name a schema or a place in it. Two schemas may use one name, and a `$id` would change what `#`
means.
"""


def transplant(schema: Mapping[str, Any], refer: Callable[[Parts], str]) -> dict[str, Any]:
    """Copy a schema; `refer` turns the target of each reference into the new reference.

    Anchors and `$id` are resolved and removed. In a standalone schema a `$dynamicRef` has one target, so it becomes a
    plain reference. References to other documents stay unchanged. Defaults and examples that contain a `$ref` are
    removed, because readers of larger documents would mistake the data for schemas.
    """
    return _Transplant(schema, refer).copy


def references(schema: Mapping[str, Any]) -> Iterator[Parts]:
    found: list[Parts] = []

    def note(parts: Parts) -> str:
        found.append(parts)
        return ""

    transplant(schema, note)
    return iter(found)


class _Transplant:
    """State of one copy."""

    def __init__(self, schema: Mapping[str, Any], refer: Callable[[Parts], str]) -> None:
        self._refer = refer
        self._anchors: dict[tuple[Parts, str], Parts] = {}
        resources: set[Parts] = set()
        for place, node in nodes(dict(schema)):
            at = tuple(map(str, place))
            if _is_resource(node):
                resources.add(at)
            for keyword in _ANCHORS:
                if isinstance(node.get(keyword), str):
                    base = next((at[:end] for end in range(len(at), 0, -1) if at[:end] in resources), ())
                    self._anchors[base, node[keyword]] = at
        self.copy: dict[str, Any] = self._copy(schema, (), ())

    def _copy(self, node: Any, at: Parts, base: Parts) -> Any:
        if isinstance(node, list):
            return [self._copy(item, (*at, str(index)), base) for index, item in enumerate(node)]
        if not isinstance(node, Mapping):
            return node
        base = at if _is_resource(node) else base
        copied: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in REFERENCES and isinstance(value, str):
                continue
            if keyword in NAMING_KEYWORDS and isinstance(value, Mapping):
                copied[keyword] = {name: self._copy(inner, (*at, keyword, name), base) for name, inner in value.items()}
            elif keyword == "discriminator":
                copied[keyword] = _remapped(value, lambda reference: self._lead(reference, base))
            elif keyword in DATA_KEYWORDS:
                if keyword not in ("default", "examples") or not _looks_referring(value):
                    copied[keyword] = value
            elif keyword not in _NAMES or not isinstance(value, str):
                copied[keyword] = self._copy(value, (*at, keyword), base)
        led = [self._lead(node[keyword], base) for keyword in REFERENCES if isinstance(node.get(keyword), str)]
        if led:
            copied = {"$ref": led[0], **copied}
        if len(led) > 1:
            copied["allOf"] = [*copied.get("allOf", ()), {"$ref": led[1]}]
        return copied

    def _lead(self, reference: str, base: Parts) -> str:
        at = local_pointer(reference)
        if at is not None:
            return self._refer(base + tuple(unescaped(part) for part in at.split("/")[1:]))
        anchored = self._anchors.get((base, unquote(reference[1:]))) if reference.startswith("#") else None
        return reference if anchored is None else self._refer(anchored)


def _is_resource(node: Mapping[str, Any]) -> bool:
    """Return True if a schema is a document of its own, so that `#` in it refers to itself."""
    found = node.get("$id")
    return isinstance(found, str) and not found.startswith("#")


def _looks_referring(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_looks_referring, value))
    return isinstance(value, Mapping) and ("$ref" in value or any(map(_looks_referring, value.values())))
