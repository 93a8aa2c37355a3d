"""Settings: one declaration per key. The reader, editor completion and the reference page are derived from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from math import inf
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

from bespeak.text.diagnostics.diagnostic import Rule, brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.table import Table

Kind = Literal["string", "path", "boolean", "number", "seconds", "count", "strings", "map", "table", "tables"]

VERB: Final = "verb"  # the format of a string that is a verb of the catalog
RULE: Final = "rule"  # the format of a string that names a rule
SCHEMA: Final = "json-schema"  # the format of a table that is a JSON Schema

_DECLARED: Final = "setting"
_KINDS: Final[tuple[tuple[type, Kind], ...]] = (
    (bool, "boolean"),
    (int, "count"),
    (float, "number"),
    (tuple, "strings"),
    (dict, "map"),
)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key of a table."""

    meaning: str
    kind: Kind = "string"
    rule: Rule = WRONG_VALUE  # the rule under which a value outside `bounds`, `choices` or `form` is reported
    bounds: tuple[float, float] | None = None  # the smallest and the largest number
    choices: tuple[Any, ...] = ()
    suggested: tuple[str, ...] = ()  # values that editors offer; others are valid too
    parse: Callable[[str], Any] | None = None
    """Converts a string, or each string of an array; returns None for an invalid one."""
    form: str = ""  # what `parse` accepts, in words: `an origin`
    advice: str = ""  # what to write instead of a value that `parse` refuses
    read: Callable[[Table, str], Any] | None = None  # Reads values of several types. Returns None for the default.
    of: Any = None  # the settings type of a table, or of each table of an array
    values: Setting | None = None  # the declaration of each value of a map
    key: str = ""  # the key in the file, if it is not the name of the field
    old: str = ""  # the key as an earlier release of the format spelled it
    known: tuple[str, ...] = ()  # further keys of a table, which are read elsewhere
    also: Mapping[str, Setting] = field(default_factory=dict)
    """Further keys beside this one that `read` takes into account."""
    format: str = ""  # what the strings or the table are, for editors: `VERB`, `RULE` or `SCHEMA`
    required: bool = False  # True for a key that must be written. A missing one is reported, and its default is used.
    security: bool = False  # True if SECURITY.md names the key
    default: Any = None


def setting(
    default: _T, meaning: str, *, kind: Kind | None = None, shown: bool = True, optional: bool = False, **more: Any
) -> _T:
    """Declare a key as a field of a settings dataclass. Without `kind`, it follows from the default.

    `shown` is False for values that the repr must not contain. `optional` is True if code may omit a key that files
    must have. `more` are fields of `Setting`. The type is that of the default, so that a field reads like any other.
    """
    guess: Kind = next((name for type_, name in _KINDS if isinstance(default, type_)), "string")
    metadata = {_DECLARED: Setting(meaning=meaning, kind=kind or guess, default=default, **more)}
    if more.get("required") and not optional:
        return field(metadata=metadata, repr=shown)  # type: ignore[no-any-return]
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata, repr=shown)  # type: ignore[return-value]
    return field(default=default, metadata=metadata, repr=shown)


def table(of: type[_T], **more: Any) -> _T:
    """Declare a table. The first line of the docstring of its settings type is its meaning."""
    declared = Setting(meaning=meaning_of(of), kind="table", of=of, **more)
    return field(default_factory=of, metadata={_DECLARED: declared})


def optional_table(of: type[_T], **more: Any) -> _T | None:
    """Declare a table that may be absent: then its settings are None."""
    declared = Setting(meaning=meaning_of(of), kind="table", of=of, **more)
    return field(default=None, metadata={_DECLARED: declared})


def tables(of: type[_T], **more: Any) -> tuple[_T, ...]:
    """Declare an array of tables."""
    declared = Setting(meaning=meaning_of(of), kind="tables", of=of, **more)
    return field(default=(), metadata={_DECLARED: declared})


def declared(of: Any) -> tuple[tuple[str, str, Setting], ...]:
    """Return the field, the key and the declaration of each setting of a type."""
    return _declared(of)


@cache
def _declared(of: Any) -> tuple[tuple[str, str, Setting], ...]:
    found = ((one.name, one.metadata.get(_DECLARED)) for one in fields(of))
    return tuple((name, setting.key or name, setting) for name, setting in found if setting is not None)


def nested_tables(of: Any, outer: str = "") -> Iterator[tuple[str, Setting]]:
    """Yield the dotted name and the declaration of each table of a type, at any depth."""
    for _, key, found in declared(of):
        if found.of is not None:
            name = f"{outer}.{key}" if outer else key
            yield name, found
            yield from nested_tables(found.of, name)


def is_guarding(found: Setting) -> bool:
    """Return True if SECURITY.md names the key, or one of its table at any depth."""
    return found.security or (found.of is not None and any(is_guarding(each) for _, _, each in declared(found.of)))


def meaning_of(of: type) -> str:
    """Return the first line of a docstring."""
    return (of.__doc__ or "").partition("\n")[0]


Resolve = Callable[[str], Any]
Readers = Mapping[str, Callable[[Table], Any]]
"""Readers of fields by their names; each reads its key of the table, and returns None for the default."""


@runtime_checkable
class CheckedSettings(Protocol):
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
    if isinstance(settings, CheckedSettings):
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


Outline = dict[str, Any]

_TYPES: Final[dict[Kind, str]] = {
    "string": "string",
    "path": "string",
    "boolean": "boolean",
    "number": "number",
    "seconds": "number",
    "count": "number",
    "map": "object",
}


def outline_of(of: type) -> Outline:
    """Describe the keys of a settings type."""
    return {"type": "object", "description": meaning_of(of), "properties": properties_of(of)}


def properties_of(of: type) -> dict[str, Outline]:
    """Return the outline of each key."""
    found: dict[str, Outline] = {}
    for _, key, setting in declared(of):
        found[key] = _outline(setting)
        found |= {other: _outline(more) for other, more in setting.also.items()}
    return found


def describe(setting: Setting) -> str:
    """Write the meaning of a setting with its bounds and its default."""
    parts = [setting.meaning]
    if setting.bounds is not None:
        parts.append(f"{setting.bounds[0]:,.10g} to {setting.bounds[1]:,.10g}.")
    if setting.default not in (None, "", ()) and setting.kind not in ("map", "table", "tables"):
        parts.append(f"Default: {written(setting.default)}.")
    return " ".join(parts)


def written(value: Any) -> str:
    """Write a value as TOML does."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _outline(setting: Setting) -> Outline:
    about = describe(setting)
    offered = setting.choices or setting.suggested
    strings = ({"enum": list(offered)} if offered else {}) | ({"format": setting.format} if setting.format else {})
    if setting.kind == "table":
        return outline_of(setting.of) | {"description": about}
    if setting.kind == "tables":
        return {
            "type": "array",
            "description": about,
            "items": outline_of(setting.of) if setting.of else {"type": "object"},
        }
    if setting.kind == "strings":
        return {"type": "array", "description": about, "items": {"type": "string", **strings}}
    if setting.values is not None:
        return {"type": "object", "description": about, "additionalProperties": _outline(setting.values)}
    return {"type": _TYPES[setting.kind], "description": about, **strings}
