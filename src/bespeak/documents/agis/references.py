"""References to the shared schemas of an AGIS document, moved into the schema that uses them and back.

In a document a schema refers to `#/schemas/Name`; one of the model has the shared schemas it needs in its own `$defs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from bespeak.contract.schema.subschemas import rewrite
from bespeak.text.source.pointer import unescaped

_SHARED: Final = "#/schemas/"
_OWN: Final = "#/$defs/"
_MOVED: Final = "schemas."  # prefix for a shared schema whose name is already taken in the schema that uses it

MOST_BROUGHT: Final = 100_000  # limit of copies, counted for each use: later steps walk through every copy

_Names = Mapping[str, str]  # names in `$defs` by the names of the shared schemas


class SharedSchemas:
    """The shared schemas of one document, with caches for schemas that many others use."""

    __slots__ = ("_alone", "_brought", "_moved", "_needs", "_used_times", "schemas")

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas
        self._used_times = 0
        self._needs: dict[str, tuple[str, ...]] = {}
        self._moved: dict[tuple[str, frozenset[tuple[str, str]]], Any] = {}
        self._brought: dict[tuple[str, ...], tuple[_Names, Mapping[str, Any]]] = {}
        self._alone: dict[str, Mapping[str, Any]] = {}

    @property
    def spent(self) -> bool:
        """True if the limit of copies is reached; further schemas with references become empty."""
        return self._used_times > MOST_BROUGHT

    def bundle(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a self-contained schema. A reference to anything else stays and dangles."""
        named = self._named_in(schema) if self.schemas else ()
        if not named:
            return schema
        if self.spent:
            return {}
        own = schema.get("$defs")
        if isinstance(own, dict) and own:
            names, definitions = self._bring(named, own)
        else:
            if named not in self._brought:
                self._brought[named] = self._bring(named, {})
            names, definitions = self._brought[named]
        self._used_times += len(definitions)
        changed: dict[str, Any] = rewrite(schema, _renaming(_SHARED, _OWN, names))
        mine = changed.get("$defs")
        changed["$defs"] = {**mine, **definitions} if isinstance(mine, dict) and mine else definitions
        return changed

    def alone(self, name: str) -> Mapping[str, Any]:
        """Return a shared schema as a self-contained one."""
        if name not in self._alone:
            self._alone[name] = self.bundle(self.schemas[name])
        return self._alone[name]

    def _bring(self, named: tuple[str, ...], own: Mapping[str, Any]) -> tuple[_Names, Mapping[str, Any]]:
        """Return the definitions that these references need, under names that are free in the schema's own `$defs`."""
        names: dict[str, str] = {}
        for name in self._used(named):
            key = name
            while key in own:
                key = _MOVED + key
            names[name] = key
        changed = frozenset((name, key) for name, key in names.items() if name != key)
        for name, key in names.items():
            if (name, changed) not in self._moved:
                self._moved[name, changed] = _moved(self.schemas[name], key, names)
        return names, {key: self._moved[name, changed] for name, key in names.items()}

    def _used(self, named: tuple[str, ...]) -> dict[str, None]:
        """Return the shared schemas that are needed, directly or through others."""
        found = dict.fromkeys(named)
        waiting = list(named)
        while waiting:
            name = waiting.pop()
            if name not in self._needs:
                self._needs[name] = self._named_in(self.schemas[name])
            for needed in self._needs[name]:
                if needed not in found:
                    found[needed] = None
                    waiting.append(needed)
        return found

    def _named_in(self, schema: Any) -> tuple[str, ...]:
        found: dict[str, None] = {}

        def note(reference: str) -> str:
            if reference.startswith(_SHARED):
                name = _name(reference.removeprefix(_SHARED).partition("/")[0])
                if name in self.schemas:
                    found[name] = None
            return reference

        rewrite(schema, note)
        return tuple(found)


def unbundle(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace copies in `$defs` by references to the shared schemas of the document."""
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
    changed: dict[str, Any] = rewrite(plain, _renaming(_OWN, _SHARED, keys))
    return changed


def target(reference: object, shared: Mapping[str, Any]) -> str | None:
    """Return the name of the shared schema that a reference names as a whole; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith(_SHARED):
        return None
    token = reference.removeprefix(_SHARED)
    name = _name(token)
    return name if "/" not in token and name in shared else None


def _shared_name(key: str, shared: Mapping[str, Any]) -> str | None:
    while key not in shared:
        if not key.startswith(_MOVED):
            return None
        key = key.removeprefix(_MOVED)
    return key


def _moved(schema: Any, key: str, names: _Names) -> Any:
    """Copy a shared schema for `$defs`, with its references adjusted to the new place."""
    inward = _renaming(_SHARED, _OWN, names)
    base = _OWN + _token(key)

    def change(reference: str) -> str:
        if reference.startswith(_SHARED):
            return inward(reference)
        return base + reference[1:] if reference == "#" or reference.startswith("#/") else reference

    return rewrite(schema, change)


def _renaming(before: str, after: str, names: _Names) -> Callable[[str], str]:
    """Make the function that moves references below one place to another, with new names."""

    def change(reference: str) -> str:
        token, slash, rest = reference.removeprefix(before).partition("/")
        name = names.get(_name(token)) if reference.startswith(before) else None
        return reference if name is None else after + (token if _name(token) == name else _token(name)) + slash + rest

    return change


def _name(token: str) -> str:
    return unescaped(unquote(token))


def _token(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~")
