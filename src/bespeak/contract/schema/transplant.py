"""A schema moved into a larger document: the same keywords, with references adjusted to the new place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from bespeak.contract.schema.reference import REFERENCES, local_pointer
from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS
from bespeak.text.source.pointer import unescaped

Parts = tuple[str, ...]
"""Place inside a schema, as the parts of its JSON Pointer."""

_NAMES: Final = frozenset({"$id", "$anchor", "$dynamicAnchor", "$schema"})
"""Keywords that name a schema or a place in it. Two schemas may use one name, and a `$id` would change what `#`
means.
"""

_ANNOTATIONS: Final = ("default", "examples")


def transplant(schema: Mapping[str, Any], refer: Callable[[Parts], str]) -> dict[str, Any]:
    """Copy a schema; `refer` turns the target of each reference into the new reference.

    Anchors and `$id` are resolved and removed. In a standalone schema a `$dynamicRef` has one target, so it becomes a
    plain reference. References to other documents stay unchanged. Defaults and examples that contain a `$ref` are
    removed, because readers of larger documents would mistake the data for schemas.
    """
    return _Transplant(schema, refer).copy


def references(schema: Mapping[str, Any]) -> Iterator[Parts]:
    """Return the places inside a schema that it refers to."""
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
        self._find_anchors(schema, (), ())
        self.copy: dict[str, Any] = self._copy(schema, (), ())

    def _find_anchors(self, node: Any, at: Parts, base: Parts) -> None:
        if isinstance(node, list):
            for index, item in enumerate(node):
                self._find_anchors(item, (*at, str(index)), base)
        elif isinstance(node, Mapping):
            base = at if _is_resource(node) else base
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(keyword), str):
                    self._anchors[base, node[keyword]] = at
            for place, inner in _below(node, at):
                self._find_anchors(inner, place, base)

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
            elif keyword in DATA_KEYWORDS:
                if keyword not in _ANNOTATIONS or not _looks_referring(value):
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
        """Return the new reference."""
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


def _below(node: Mapping[str, Any], at: Parts) -> Iterator[tuple[Parts, Any]]:
    """Return the values in schema position directly below a schema."""
    for keyword, value in node.items():
        if keyword in NAMING_KEYWORDS and isinstance(value, Mapping):
            for name, inner in value.items():
                yield (*at, keyword, name), inner
        elif keyword not in DATA_KEYWORDS:
            yield (*at, keyword), value
