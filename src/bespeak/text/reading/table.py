"""Typed access to a table of a document. Wrong values are reported, not raised, so that one run finds them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from typing import Any, Final, TypeGuard, TypeVar

from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, Severity, brief, has_errors, unquoted
from bespeak.text.reading import rules
from bespeak.text.source.pointer import child, nodes
from bespeak.text.source.tree import Change, Location

_MOST: Final = 100  # maximum number of findings per document: a broken one can break every rule in every line


@dataclass(slots=True, eq=False)
class Findings:
    """Findings of one document. Places are looked up only for reported findings."""

    locate: Callable[[str], Location]  # function that returns the place of a pointer
    tolerant: bool = field(default=False, kw_only=True)
    """True for documents of others: errors become warnings, unknown keys are ignored."""
    found: list[Diagnostic] = field(default_factory=list, init=False)

    @property
    def failed(self) -> bool:
        return has_errors(self.found)

    @property
    def full(self) -> bool:
        return len(self.found) > _MOST

    def error(self, rule: Rule, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        self._add(rule.found(message, None, at, advice, fix, severity="warning" if self.tolerant else "error"))

    def warning(self, rule: Rule, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        self._add(rule.found(message, None, at, advice, fix, severity="warning"))

    def info(self, rule: Rule, message: str, at: str = "", advice: str = "") -> None:
        self._add(rule.found(message, None, at, advice, severity="info"))

    def _add(self, finding: Diagnostic) -> None:
        if len(self.found) < _MOST:
            self.found.append(replace(finding, location=self.locate(finding.pointer)))
        elif len(self.found) == _MOST:
            # The rest of the document may hold errors, so this finding counts as one.
            grave: Severity = "warning" if self.tolerant else "error"
            rest, advice = f"only the first {_MOST} findings are shown", "Fix these first."
            self.found.append(rules.TOO_MANY_FINDINGS.found(rest, self.locate(""), advice=advice, severity=grave))


IGNORES: Final = "x-bespeak-ignore"  # key under which any table lists findings to ignore; only the linter reads it
_T = TypeVar("_T")
_INT64: Final = 1 << 63
_SLIP: Final = 0.8  # similarity from which a word counts as a misspelling of another
_NAMES: Final[dict[type, str]] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "a table",
    type(None): "null",
}
_SYNONYMS: Final = {
    "idempotent": ("is_idempotent", "Write `is_idempotent`."),
    **dict.fromkeys(("inputs", "parameters", "params"), ("input", "Write `input`.")),
    **dict.fromkeys(("host", "port"), ("agtp", 'Write agtp = "host:port".')),
}  # synonyms of keys that spelling similarity cannot find, each with the key and the advice


@dataclass(slots=True, eq=False)
class Table:
    """One table (TOML) or object (JSON). It remembers the keys it was asked for; `finish` reports the others."""

    data: dict[str, Any]
    at: str
    findings: Findings
    asked: set[str] = field(default_factory=set, init=False)

    def has(self, key: str) -> bool:
        self.asked.add(key)
        return self.data.get(key) is not None

    def value(self, key: str) -> Any:
        self.asked.add(key)
        return self.data.get(key)

    def pointer(self, key: str) -> str:
        return f"{self.at}/{key}" if key.isidentifier() else child(self.at, key)

    def error(self, rule: Rule, key: str, message: str, advice: str = "", fix: Fix | None = None) -> None:
        self.findings.error(rule, message, self.pointer(key), advice, fix)

    def warning(self, rule: Rule, key: str, message: str, advice: str = "", fix: Fix | None = None) -> None:
        self.findings.warning(rule, message, self.pointer(key), advice, fix)

    def missing(self, key: str, advice: str = "") -> None:
        self.findings.error(rules.MISSING_KEY, f"`{key}` is missing", self.at, advice)

    def wrong(self, key: str, wanted: str, value: object) -> None:
        self.error(rules.WRONG_VALUE, key, f"`{key}` is {kind(value)}, not {wanted}: {brief(value)}")

    def either(self, key: str, old: str) -> str:
        """Return the key to read. The old spelling is reported, and read if the present one is missing."""
        if not self.has(key) and self.has(old):
            message = f"`{old}` is read as `{key}`, as an earlier release of the format wrote it"
            fix = Fix(f"Write `{key}`", (Change("rename", self.pointer(old), key=key),))
            self.warning(rules.EARLIER_SPELLING, old, message, f"Write `{key}`.", fix)
            return old
        return key

    def text(self, key: str) -> str | None:
        return self._optional(str, key, "a string")

    def need_text(self, key: str, advice: str = "") -> str:
        if self.value(key) is None:
            self.missing(key, advice)
        return self.text(key) or ""

    def choice(self, key: str, options: Sequence[str]) -> str | None:
        """Read an optional string that must be one of `options`."""
        value = self.text(key)
        if value is None or value in options:
            return value
        near = get_close_matches(value[:40].lower(), options, n=1, cutoff=0.5)
        advice, fix = "", None
        if near:
            advice = f'Did you mean "{near[0]}"?'
            if near[0] in get_close_matches(value[:40].lower(), options, n=1, cutoff=_SLIP):
                fix = Fix(f"Write {near[0]}", (Change("replace", self.pointer(key), near[0]),), safe=False)
        message = f"`{key}` must be one of {', '.join(options)}; got {brief(value)}"
        self.error(rules.WRONG_CHOICE, key, message, advice, fix)
        return None

    def boolean(self, key: str) -> bool | None:
        return self._optional(bool, key, "true or false")

    def number(self, key: str) -> float | None:
        """Read an optional finite number. An integer stays an integer."""
        value = self.value(key)
        if value is None or _is_number(value):
            return value
        self.wrong(key, "a number", value)
        return None

    def positive(self, key: str) -> float | None:
        value = self.number(key)
        if value is not None and value <= 0:
            self.error(rules.WRONG_VALUE, key, f"`{key}` must be above 0; got {brief(value)}")
            return None
        return value

    def count(self, key: str) -> int | None:
        value = self.value(key)
        if value is None or (is_integer(value) and value > 0):
            return value
        self.wrong(key, "an integer above 0", value)
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(item for item in self._items(key, "string") if self._is(str, key, "a string", item))

    def tables(self, key: str) -> list[Table]:
        return [
            Table(item, f"{self.pointer(key)}/{index}", self.findings)
            for index, item in enumerate(self._items(key, "table"))
            if self._is(dict, key, "a table", item)
        ]

    def table(self, key: str) -> Table | None:
        value = self._optional(dict, key, "a table")
        return None if value is None else Table(value, self.pointer(key), self.findings)

    def text_map(self, key: str) -> dict[str, str]:
        """Read a table of strings; empty if it is missing. An integer becomes its digits."""
        inner = self.table(key)
        found: dict[str, str] = {}
        for name, value in inner.data.items() if inner else ():
            if isinstance(value, str) or is_integer(value):
                found[name] = str(value)
            elif inner:
                inner.wrong(name, "a string", value)
        return found

    def endpoints(self, rule: Rule) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield each key like "BOOK /room" with its method and path. Report others under `rule`, repeats as D109."""
        known: set[tuple[str, str]] = set()
        for name in self.data:
            method, _, path = name.partition(" ")
            key = (method.upper(), path.strip())
            if not method or not key[1].startswith("/"):
                advice = 'Write the key like "BOOK /room".'
                self.error(rule, name, f"{brief(name)} does not name an endpoint", advice)
            elif key in known:
                self.error(rules.DUPLICATE, name, f"{' '.join(key)} is listed twice", "Keep one of them.")
            else:
                known.add(key)
                yield name, key

    def json(self, key: str) -> dict[str, Any]:
        if (inner := self.table(key)) is None:
            return {}
        self.check_json(key)
        return inner.data

    def json_tables(self, key: str) -> tuple[dict[str, Any], ...]:
        """Read an array of tables whose form their author chooses."""
        self.check_json(key)
        return tuple(entry.data for entry in self.tables(key))

    def check_json(self, key: str) -> None:
        """Report the values below a key that JSON cannot express: dates, infinities and NaN."""
        whole = self.value(key)
        if _is_json(whole):
            return
        for at, value in nodes(whole, self.pointer(key)):
            if not isinstance(value, dict | list) and not _is_json(value):
                message = f"a JSON document cannot hold {kind(value)}: {brief(value)}"
                self.findings.error(rules.NOT_JSON, message, at, "Write it as a string.")

    def finish(self, *, strict: bool = True) -> None:
        """Report the keys that were not read, each with a similar known key.

        With `strict` they are errors: a misspelt key may guard something, and its author relies on it. A key that
        starts with `x-` is an extension and only warned of.
        """
        if self.findings.tolerant or self.data.keys() <= self.asked:
            return
        for key in self.data:
            if key in self.asked or key == IGNORES or self.findings.full:
                continue
            advice, fix = self._meant(key)
            report = self.findings.error if strict and not key.startswith("x-") else self.findings.warning
            report(rules.UNKNOWN_KEY, f"`{unquoted(key)}` is not a known key", self.pointer(key), advice, fix)

    def check_near(self, keys: Sequence[str]) -> None:
        """Report unknown keys that look like misspellings of `keys`, in a table that may have others."""
        for key in self.data:
            known = key in self.asked or key in keys or self.findings.full
            near = [] if known else get_close_matches(key[:40].lower(), keys, n=1, cutoff=_SLIP)
            if near:
                message = f"`{unquoted(key)}` is not a known key, and looks like `{near[0]}`"
                self.error(rules.UNKNOWN_KEY, key, message, f"Did you mean `{near[0]}`?")

    def _meant(self, key: str) -> tuple[str, Fix | None]:
        known, advice = _SYNONYMS.get(key, ("", ""))
        if known in self.asked:
            return advice, None
        if not (near := get_close_matches(key[:40].lower(), self.asked, n=1)):
            return "", None
        change = Change("rename", self.pointer(key), key=near[0])
        fix = None if near[0] in self.data else Fix(f"Rename it to {near[0]}", (change,), safe=False)
        return f"Did you mean `{near[0]}`?", fix

    def _optional(self, of: type[_T], key: str, wanted: str) -> _T | None:
        value = self.value(key)
        if value is None or isinstance(value, of):
            return value
        self.wrong(key, wanted, value)
        return None

    def _items(self, key: str, of: str) -> list[Any]:
        return self._optional(list, key, f"an array of {of}s") or []

    def _is(self, wanted: type, key: str, name: str, item: object) -> bool:
        if isinstance(item, wanted):
            return True
        self.error(rules.WRONG_VALUE, key, f"`{key}` holds {kind(item)}, not {name}: {brief(item)}")
        return False


def is_integer(value: object) -> TypeGuard[int]:
    """Test for an integer of 64 bits, the limit of TOML; Python would accept any."""
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _is_number(value: object) -> TypeGuard[float]:
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def _is_json(value: object) -> bool:
    """Test whether JSON can express a value. A loop with a stack: depth costs memory, not frames."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif not (value is None or isinstance(value, (str, bool)) or _is_number(value)):
            return False
    return True


def kind(value: object) -> str:
    """Name the type of a value in the words of TOML."""
    if isinstance(value, float) and not math.isfinite(value):
        return "an infinite number" if math.isinf(value) else "a not-a-number"
    if type(value) is int and not is_integer(value):
        return "an integer of more than 64 bits"
    return _NAMES.get(type(value), "a date" if isinstance(value, date) else "a time")


def as_mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_optional_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def as_texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in as_list(value) if isinstance(item, str))
