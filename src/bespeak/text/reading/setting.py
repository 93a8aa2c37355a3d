"""Declarations of settings: one per key. Reader, editor completion and reference page are derived from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Final, Literal, TypeVar

from bespeak.text.diagnostics.rule import Rule
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.table import Table

Kind = Literal["string", "path", "boolean", "number", "seconds", "count", "strings", "map", "table", "tables"]

VERB: Final = "verb"
"""The format of a string that is a verb of the catalog."""
RULE: Final = "rule"
"""The format of a string that names a rule."""
SCHEMA: Final = "json-schema"
"""The format of a table that is a JSON Schema."""

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
    rule: Rule = WRONG_VALUE
    """The rule under which a value outside `bounds`, `choices` or `form` is reported."""
    bounds: tuple[float, float] | None = None
    """The smallest and the largest number."""
    choices: tuple[Any, ...] = ()
    suggested: tuple[str, ...] = ()
    """Values that editors offer; others are valid too."""
    parse: Callable[[str], Any] | None = None
    """Converts a string, or each string of an array; returns None for an invalid one."""
    form: str = ""
    """What `parse` accepts, in words: `an origin`."""
    advice: str = ""
    """What to write instead of a value that `parse` refuses."""
    read: Callable[[Table, str], Any] | None = None
    """Reads values of several types. Returns None for the default."""
    of: Any = None
    """The settings type of a table, or of each table of an array."""
    values: Setting | None = None
    """The declaration of each value of a map."""
    key: str = ""
    """The key in the file, if it is not the name of the field."""
    old: str = ""
    """The key as an earlier release of the format spelled it."""
    known: tuple[str, ...] = ()
    """Further keys of a table, which are read elsewhere."""
    also: Mapping[str, Setting] = field(default_factory=dict)
    """Further keys beside this one that `read` takes into account."""
    format: str = ""
    """What the strings or the table are, for editors: `VERB`, `RULE` or `SCHEMA`."""
    required: bool = False
    """True for a key that must be written. A missing one is reported, and its default is used."""
    security: bool = False
    """True if SECURITY.md names the key."""
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
