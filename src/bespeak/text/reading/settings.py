"""A table as settings: the declared type, filled in from the keys that are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from math import inf
from typing import Any, Protocol, TypeVar, runtime_checkable

from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.setting import Setting, declared
from bespeak.text.reading.table import Table

_T = TypeVar("_T")

Resolve = Callable[[str], Any]
Readers = Mapping[str, Callable[[Table], Any]]
"""Readers of fields by their names; each reads its key of the table, and returns None for the default."""


@runtime_checkable
class Checked(Protocol):
    """Settings that constrain each other."""

    def checked(self, table: Table) -> Any:
        """Report contradictions; return the settings to use."""
        ...


def read_settings(of: type[_T], table: Table, resolve: Resolve = str, known: Iterable[str] = ()) -> _T:
    """Read a table as a settings type. A wrong value is reported and keeps its default.

    `resolve` makes a path of a string. `known` are further keys, which are read elsewhere.
    """
    values = read_values(of, table, resolve)
    for key in known:
        table.has(key)
    settings = of(**values)
    if isinstance(settings, Checked):
        settings = settings.checked(table)
    table.finish()
    return settings


def read_values(
    of: type, table: Table, resolve: Resolve = str, readers: Readers | None = None, *, complete: bool = True
) -> dict[str, Any]:
    """Read the declared keys of a table; return the values of those that are written or required, by field.

    `readers` read fields whose types belong to the caller's room. Unless the table must be `complete`, missing keys are
    not reported.
    """
    values: dict[str, Any] = {}
    for name, key, setting in declared(of):
        for other in setting.also:
            table.has(other)
        used = table.either(key, setting.old) if setting.old else key
        read = readers.get(name) if readers else None
        value = _read(setting, table, used, resolve) if read is None else read(table)
        if value is not None:
            values[name] = value
        elif setting.required:
            values[name] = setting.default
            if complete and (not table.has(used) or (setting.kind == "tables" and table.value(used) == [])):
                table.missing(used, setting.advice)
    return values


def _read(setting: Setting, table: Table, key: str, resolve: Resolve) -> Any:
    if setting.read is not None:
        return setting.read(table, key)
    match setting.kind:
        case "boolean":
            return table.boolean(key)
        case "number" | "seconds" | "count":
            return _read_number(setting, table, key)
        case "strings":
            return read_strings(setting, table, key, table.texts(key)) or None
        case "map":
            return table.text_map(key) or None
        case "table":
            inner = table.table(key)
            return None if inner is None else read_settings(setting.of, inner, resolve, setting.known)
        case "tables":
            return tuple(read_settings(setting.of, inner, resolve) for inner in table.tables(key)) or None
        case "path":
            text = _read_string(setting, table, key)
            return resolve(text) if text else None
        case "string":
            return _read_string(setting, table, key)


def _read_number(setting: Setting, table: Table, key: str) -> float | None:
    value = table.count(key) if setting.kind == "count" else table.number(key)
    least, most = setting.bounds or (-inf, inf)
    if value is None or (least <= value <= most and (not setting.choices or value in setting.choices)):
        return value
    unit = " seconds" if setting.kind == "seconds" else ""
    wanted = f"one of {', '.join(map(str, setting.choices))}" if setting.choices else f"{least:.10g} to {most:.10g}"
    message = f"`{key}` must be {wanted}{unit}; got {brief(value)}"
    table.error(setting.rule, key, message, setting.advice)
    return None


def _read_string(setting: Setting, table: Table, key: str) -> Any:
    if setting.choices:
        return table.choice(key, setting.choices)
    text = table.text(key)
    if text is None or setting.parse is None:
        return text
    value = setting.parse(text)
    if value is None:
        message = f"`{key}` must be {setting.form}; got {brief(text)}"
        table.error(setting.rule, key, message, setting.advice)
    return value


def read_strings(setting: Setting, table: Table, key: str, texts: Iterable[str]) -> tuple[Any, ...]:
    """Return the strings that are valid, each once; report the others."""
    found: dict[Any, None] = {}
    for text in dict.fromkeys(texts):
        value = setting.parse(text) if setting.parse is not None else text
        if value is not None and (not setting.choices or value in setting.choices):
            found[value] = None
            continue
        near = get_close_matches(text[:40], setting.choices, n=1, cutoff=0.5)
        advice = f'Did you mean "{near[0]}"?' if near else setting.advice
        form = f"one of {', '.join(setting.choices)}" if setting.choices else setting.form
        subject = f"each value of `{key}`" if isinstance(table.value(key), list) else f"`{key}`"
        table.error(setting.rule, key, f"{subject} must be {form}; got {brief(text)}", advice)
    return tuple(found)
