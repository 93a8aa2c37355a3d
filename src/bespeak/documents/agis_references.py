"""References to the shared schemas of an AGIS document, brought into the schema that uses them and back again.

In a document a schema refers to `#/schemas/Name`. A schema of the model stands by itself, so that what it refers to
lies in its own `$defs`, and only that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from bespeak.schema.compile import DATA_KEYWORDS, NAMING_KEYWORDS

_SHARED: Final = "#/schemas/"
_OWN: Final = "#/$defs/"
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})
_MOVED: Final = "schemas."
"""Put before the name of a shared schema where the schema that uses it has another one of that name."""

_Names = Mapping[str, str]
"""Shared schemas, each with its name in `$defs`."""


def bundle(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that stands by itself. What is not under `schemas` stays a reference that leads nowhere."""
    used = _used(schema, shared) if shared else ()
    if not used:
        return schema
    own = schema.get("$defs")
    own = own if isinstance(own, dict) else {}
    names: dict[str, str] = {}
    for name in used:
        key = name
        while key in own:
            key = _MOVED + key
        names[name] = key
    changed: dict[str, Any] = _rewritten(schema, _inward(names))
    definitions = changed.get("$defs")
    return {
        **changed,
        "$defs": {
            **(definitions if isinstance(definitions, dict) else {}),
            **{key: _moved(shared[name], key, names) for name, key in names.items()},
        },
    }


def unbundle(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema as a document with these shared schemas writes it."""
    own = schema.get("$defs")
    if not shared or not isinstance(own, dict):
        return schema
    names = {name: key for key in own if (name := _shared_name(key, shared)) is not None}
    while True:
        same = {name: key for name, key in names.items() if own[key] == _moved(shared[name], key, names)}
        if len(same) == len(names):
            break
        names = same
    if not names:
        return schema
    keys = {key: name for name, key in names.items()}
    rest = {key: value for key, value in own.items() if key not in keys}
    plain = {key: value for key, value in schema.items() if key != "$defs"}
    if rest:
        plain["$defs"] = rest
    changed: dict[str, Any] = _rewritten(plain, _outward(keys))
    return changed


def target(reference: object, shared: Mapping[str, Any]) -> str | None:
    """The name of the shared schema a reference leads to as a whole, if it leads to one."""
    if not isinstance(reference, str) or not reference.startswith(_SHARED):
        return None
    token = reference.removeprefix(_SHARED)
    name = _name(token)
    return name if "/" not in token and name in shared else None


def _used(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, None]:
    """The shared schemas a schema needs, also through others."""
    found: dict[str, None] = {}
    waiting: list[Any] = [schema]

    def note(reference: str) -> str:
        if reference.startswith(_SHARED):
            name = _name(reference.removeprefix(_SHARED).partition("/")[0])
            if name in shared and name not in found:
                found[name] = None
                waiting.append(shared[name])
        return reference

    while waiting:
        _rewritten(waiting.pop(), note)
    return found


def _shared_name(key: str, shared: Mapping[str, Any]) -> str | None:
    while key not in shared:
        if not key.startswith(_MOVED):
            return None
        key = key.removeprefix(_MOVED)
    return key


def _moved(schema: Any, key: str, names: _Names) -> Any:
    """A shared schema as it stands in `$defs`: what it calls its own root is now a place inside another schema."""
    inward = _inward(names)
    base = _OWN + _token(key)

    def change(reference: str) -> str:
        if reference.startswith(_SHARED):
            return inward(reference)
        return base + reference[1:] if reference == "#" or reference.startswith("#/") else reference

    return _rewritten(schema, change)


def _inward(names: _Names) -> Callable[[str], str]:
    return lambda reference: _changed(reference, _SHARED, _OWN, names)


def _outward(keys: _Names) -> Callable[[str], str]:
    return lambda reference: _changed(reference, _OWN, _SHARED, keys)


def _changed(reference: str, before: str, after: str, names: _Names) -> str:
    if not reference.startswith(before):
        return reference
    token, slash, rest = reference.removeprefix(before).partition("/")
    name = names.get(_name(token))
    if name is None:
        return reference
    return after + (token if _name(token) == name else _token(name)) + slash + rest


def _name(token: str) -> str:
    return unquote(token).replace("~1", "/").replace("~0", "~")


def _token(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~")


def _rewritten(node: Any, change: Callable[[str], str]) -> Any:
    """A copy of a schema with every reference changed. What a schema holds as data is no reference."""
    if isinstance(node, list):
        return [_rewritten(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    copied: dict[str, Any] = {}
    for key, value in node.items():
        if key in _REFERENCES and isinstance(value, str):
            copied[key] = change(value)
        elif key in DATA_KEYWORDS:
            copied[key] = value
        elif key in NAMING_KEYWORDS and isinstance(value, dict):
            copied[key] = {name: _rewritten(item, change) for name, item in value.items()}
        else:
            copied[key] = _rewritten(value, change)
    return copied
