"""Local references of a schema (`$ref: "#/..."`): their targets, and copies with changed references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS
from bespeak.text.source.pointer import value_at

REFERENCES: Final = ("$ref", "$dynamicRef")


def local_pointer(reference: object) -> str | None:
    """Return the JSON Pointer of a reference into its own document; None for an anchor or another document.

    The fragment is decoded before it is split (RFC 6901 6), as validators do.
    """
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    return fragment if not fragment or fragment.startswith("/") else None


def target(reference: object, root: object, default: Any = None) -> Any:
    """Return what a local reference names in the document `root`; `default` if it names nothing there."""
    at = local_pointer(reference)
    return default if at is None else value_at(root, at, default)


def resolve(schema: object, root: object, *, most: int) -> Mapping[str, Any]:
    """Follow the `$ref` of a schema, and that of its target, at most `most` times, because references may form a cycle.

    Keywords beside a reference override its target. A dangling reference adds nothing.
    """
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
    """Replace the local reference of a schema, and those of its alternatives, by their targets.

    References below `most` levels stay: they may form a cycle.
    """
    if not isinstance(schema, Mapping) or not most:
        return schema
    if target(schema.get("$ref"), root) is not None:
        return inline(resolve(schema, root, most=1), root, most=most - 1)
    found = dict(schema)
    for keyword in ("anyOf", "oneOf"):
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
        elif key in DATA_KEYWORDS:
            copied[key] = value
        elif key in NAMING_KEYWORDS and isinstance(value, Mapping):
            copied[key] = {name: rewrite(item, change) for name, item in value.items()}
        else:
            copied[key] = rewrite(value, change)
    return copied
