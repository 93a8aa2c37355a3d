"""Settings: one declaration per key. The reader, editor completion and the reference page are derived from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from math import inf
from typing import Any, Final, Literal, TypeVar

from bespeak.text.diagnostics.diagnostic import Rule, brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.table import Table

Kind = Literal["string", "path", "boolean", "number", "seconds", "count", "strings", "map", "table", "tables"]
VERB: Final = "verb"  # the format of a string that is a verb of the catalog
RULE: Final = "rule"  # the format of a string that names a rule
SCHEMA: Final = "json-schema"  # the format of a table that is a JSON Schema
_DECLARED: Final = "setting"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_KINDS: Final[dict[type, Kind]] = {bool: "boolean", int: "count", float: "number", tuple: "strings", dict: "map"}
_PLAIN: Final[dict[Kind, type]] = {"string": str, "boolean": bool}  # kinds that need no more than a look at the type
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
    parse: Callable[[str], Any] | None = None  # converts a string, or each of an array; None if it is invalid
    form: str = ""  # what `parse` accepts, in words: `an origin`
    advice: str = ""  # what to write instead of a value that `parse` refuses
    read: Callable[[Table, str], Any] | None = None
    """Reads values of several types, or of `also` or `known` in their place. Returns None for the default."""
    of: Any = None  # the settings type of a table, or of each table of an array
    values: Setting | None = None  # the declaration of each value of a map
    key: str = ""  # the key in the file, if it is not the name of the field
    old: str = ""  # the key as an earlier release of the format spelled it
    known: tuple[str, ...] = ()  # keys that editors do not offer: of a table, read elsewhere, or taken by `read`
    also: Mapping[str, Setting] = field(default_factory=dict)  # further keys that `read` takes into account
    format: str = ""  # what the strings or the table are, for editors: `VERB`, `RULE` or `SCHEMA`
    required: bool = False  # True for a key that must be written. A missing one is reported, and its default is used.
    security: bool = False  # True if SECURITY.md names the key
    default: Any = None


def setting(
    default: _T, meaning: str, *, kind: Kind | None = None, shown: bool = True, optional: bool = False, **more: Any
) -> _T:
    """Declare a key as a field of a settings dataclass. Without `kind`, it follows from the default.

    `shown` is False for values that the repr must not contain; code may omit an `optional` key that files must have.
    """
    guess: Kind = next((name for type_, name in _KINDS.items() if isinstance(default, type_)), "string")
    metadata = {_DECLARED: Setting(meaning=meaning, kind=kind or guess, default=default, **more)}
    if more.get("required") and not optional:
        return field(metadata=metadata, repr=shown)  # type: ignore[no-any-return]
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata, repr=shown)  # type: ignore[return-value]
    return field(default=default, metadata=metadata, repr=shown)


def table(of: type[_T], **more: Any) -> _T:
    """Declare a table. The first line of the docstring of its settings type is its meaning."""
    return field(default_factory=of, metadata=_declare(of, "table", more))


def optional_table(of: type[_T], **more: Any) -> _T | None:
    """Declare a table that may be absent: then its settings are None."""
    return field(default=None, metadata=_declare(of, "table", more))


def tables(of: type[_T], **more: Any) -> tuple[_T, ...]:
    return field(default=(), metadata=_declare(of, "tables", more))


def _declare(of: type, kind: Kind, more: dict[str, Any]) -> dict[str, Setting]:
    return {_DECLARED: Setting(meaning=meaning_of(of), kind=kind, of=of, **more)}


@cache
def declared(of: Any) -> tuple[tuple[str, str, Setting], ...]:
    """Return the field, the key and the declaration of each setting of a type."""
    found = ((one.name, one.metadata.get(_DECLARED)) for one in fields(of))
    return tuple((name, setting.key or name, setting) for name, setting in found if setting is not None)


def nested_tables(settings: Iterable[tuple[str, Setting]], outer: str = "") -> Iterator[tuple[str, Setting]]:
    """Yield the dotted name and the declaration of each table among settings, at any depth."""
    for key, found in settings:
        if found.of is not None:
            name = f"{outer}.{key}" if outer else key
            yield name, found
            yield from nested_tables(((inner, each) for _, inner, each in declared(found.of)), name)


def is_guarding(found: Setting) -> bool:
    """Return True if SECURITY.md names the key, or one of its table at any depth."""
    return found.security or (found.of is not None and any(is_guarding(each) for _, _, each in declared(found.of)))


def meaning_of(of: type) -> str:
    return (of.__doc__ or "").partition("\n")[0]


Resolve = Callable[[str], Any]
Readers = Mapping[str, Callable[[Table], Any]]  # readers of fields by name; each returns None for the default


def read_settings(of: type[_T], table: Table, resolve: Resolve = str, known: Iterable[str] = ()) -> _T:
    """Read a table as a settings type. `known` are further keys, which are read elsewhere."""
    settings = of(**read_values(of, table, resolve))
    table.asked.update(known)
    if (checked := getattr(settings, "checked", None)) is not None:  # settings that constrain each other
        settings = checked(table)
    if not table.data.keys() <= table.asked:
        table.finish()
    return settings


def read_values(
    of: type, table: Table, resolve: Resolve = str, readers: Readers | None = None, *, complete: bool = True
) -> dict[str, Any]:
    """Read the written and required keys by field. Missing ones are reported if the table must be `complete`."""
    values: dict[str, Any] = {}
    for name, key, setting in declared(of):
        used = table.either(key, setting.old) if setting.old and table.data.get(key) is None else key
        table.asked.update((used, *setting.also))
        read = readers.get(name) if readers else None
        value = _read(setting, table, used, resolve) if read is None else read(table)
        if value is not None:
            values[name] = value
        elif setting.required:
            values[name] = setting.default
            written = table.data.get(used)
            if complete and (written is None or (setting.kind == "tables" and written == [])):
                table.missing(used, setting.advice)
    return values


def _read(setting: Setting, table: Table, key: str, resolve: Resolve) -> Any:
    value = table.data.get(key)
    if setting.read is not None and (value is not None or setting.also or setting.known):
        return setting.read(table, key)
    if value is None:
        return None
    if type(value) is _PLAIN.get(setting.kind) and setting.parse is None and value in (setting.choices or (value,)):
        return value
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
    table.error(setting.rule, key, f"`{key}` must be {wanted}{unit}; got {brief(value)}", setting.advice)
    return None


def _read_string(setting: Setting, table: Table, key: str) -> Any:
    if setting.choices:
        return table.choice(key, setting.choices)
    text = table.text(key)
    if text is None or setting.parse is None:
        return text
    if (value := setting.parse(text)) is None:
        table.error(setting.rule, key, f"`{key}` must be {setting.form}; got {brief(text)}", setting.advice)
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


def read_variable(block: Table, key: str) -> str | None:
    """Read the name of an environment variable, written as `${NAME}`."""
    text = block.text(key)
    found = None if text is None else _VARIABLE.fullmatch(text)
    if text is not None and found is None:
        # The value is not shown: it may be the password.
        message = f"`{key}` must be the name of an environment variable in ${{}}"
        block.error(WRONG_VALUE, key, message, 'Write it like "${SMTP_PASSWORD}", and set the variable.')
    return None if found is None else found[1]


def read_tables_of(of: type[_T]) -> Callable[[Table, str], Mapping[str, _T] | None]:
    """Return the reader of a map whose values are tables of a settings type."""

    def read(block: Table, key: str) -> Mapping[str, _T] | None:
        table = block.table(key)
        inner = {} if table is None else {name: table.table(name) for name in table.data}
        return {name: read_settings(of, one) for name, one in inner.items() if one is not None} or None

    return read


Outline = dict[str, Any]
_TYPES: Final[dict[Kind, str]] = {"path": "string", "seconds": "number", "count": "number", "map": "object"}


def outline_of(of: type) -> Outline:
    return {"type": "object", "description": meaning_of(of), "properties": properties_of(of)}


def properties_of(of: type) -> dict[str, Outline]:
    """Return the outline of each key of a settings type."""
    return outlines((key, found) for _, key, found in declared(of))


def outlines(settings: Iterable[tuple[str, Setting]]) -> dict[str, Outline]:
    """Return the outline of each key."""
    found: dict[str, Outline] = {}
    for key, setting in settings:
        found[key] = _outline(setting)
        found |= {other: _outline(more) for other, more in setting.also.items()}
    return found


def describe(setting: Setting) -> str:
    parts = [setting.meaning]
    if setting.bounds is not None:
        parts.append(f"{setting.bounds[0]:,.10g} to {setting.bounds[1]:,.10g}.")
    if setting.default not in (None, "", ()) and setting.kind not in ("map", "table", "tables"):
        parts.append(f"Default: {written(setting.default)}.")
    return " ".join(parts)


def written(value: Any) -> str:
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
        items = outline_of(setting.of) if setting.of else {"type": "object"}
        return {"type": "array", "description": about, "items": items}
    if setting.kind == "strings":
        return {"type": "array", "description": about, "items": {"type": "string", **strings}}
    if setting.values is not None:
        return {"type": "object", "description": about, "additionalProperties": _outline(setting.values)}
    return {"type": _TYPES.get(setting.kind, setting.kind), "description": about, **strings}
