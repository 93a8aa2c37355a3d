"""One change of a contract: its rule, its effect on clients, and the fingerprint that approvals refer to."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import msgspec

from bespeak.text.diagnostics.diagnostic import Diagnostic, Normative, Rule, Severity, brief
from bespeak.text.source.tree import Location

Kind = Literal["added", "removed", "narrowed", "widened", "changed"]
Category = Literal["WIRE", "CONTRACT", "PROSE"]
Level = Literal["breaking", "risky", "safe"]
SideLevels = tuple[Level, Level]

CATEGORIES: Final[tuple[Category, ...]] = ("WIRE", "CONTRACT", "PROSE")
"""Nested categories: CONTRACT includes WIRE, and PROSE includes everything."""

_NORMATIVE: Final[dict[Kind, Normative]] = {"removed": "MUST", "narrowed": "MUST", "changed": "SHOULD"}
"""Usual gravity of a change; the level of each change decides."""


@dataclass(frozen=True, slots=True)
class ChangeRule(Rule):
    """One kind of change, declared beside the check that reports it. The page of its kind has a line for it."""

    kind: Kind = "changed"
    category: Category = "WIRE"
    levels: SideLevels = ("risky", "risky")  # of a change of a schema, for what clients send and for what they receive

    @property
    def page(self) -> str:
        """Name of the page that explains all changes of its kind."""
        return f"change-{self.kind}"


def _rule(category: Category, rule: str, name: str, kind: Kind, levels: SideLevels = ("risky", "risky")) -> ChangeRule:
    return ChangeRule(rule, name, _NORMATIVE.get(kind, "style"), "", kind=kind, category=category, levels=levels)


wire: Final = partial(_rule, "WIRE")
contract: Final = partial(_rule, "CONTRACT")
prose: Final = partial(_rule, "PROSE")


WORDING_CHANGED: Final = prose("C104", "wording-changed", "changed")
MORE_CHANGES: Final = wire("C199", "more-changes", "changed")

Direction = Literal["request", "response", "semantics", "policy"]

LEVELS: Final[tuple[Level, ...]] = ("breaking", "risky", "safe")  # levels from worst to harmless
MOST_CHANGES: Final = 1_000  # limit of reported changes per endpoint

_SEVERITIES: Final[dict[Level, Severity]] = {"breaking": "error", "risky": "warning", "safe": "info"}


@dataclass(frozen=True, slots=True)
class ContractChange:
    """One difference between an old and a new contract, from the view of a client of the old one."""

    about: ChangeRule  # kind of change
    direction: Direction
    level: Level
    endpoint: str  # endpoint, such as `BOOK /room`; empty for the whole service
    pointer: str  # JSON Pointer inside the endpoint or the service
    message: str  # description of the change, with the old and new values
    help: str = ""  # advice for clients, or how to make the change compatible
    old: Any = None
    new: Any = None
    location: Location | None = None  # place of the new endpoint, if it came from a file

    @property
    def rule(self) -> str:
        return self.about.id

    @property
    def fingerprint(self) -> str:
        """Identifier that does not depend on the place in a file or the wording of the message."""
        parts = (self.rule, self.endpoint, self.pointer, canonical(self.old), canonical(self.new))
        return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:16]

    def diagnostic(self) -> Diagnostic:
        """Return the change as a finding for the reporters."""
        endpoint = f"{self.endpoint}: " if self.endpoint else ""
        pointer = f"/endpoint{self.pointer}" if self.endpoint else self.pointer
        message = f"{endpoint}{self.message} [{self.level}]"
        return Diagnostic(self.rule, _SEVERITIES[self.level], message, self.location, pointer, self.help)

    def to_json(self) -> dict[str, Any]:
        own = ("level", "direction", "endpoint", "pointer", "message", "help", "old", "new", "fingerprint")
        about = {"name": self.about.name, "category": self.about.category, "kind": self.about.kind}
        location = str(self.location) if self.location else None
        return {"rule": self.rule, **about, **{name: getattr(self, name) for name in own}, "location": location}


Told = tuple[ChangeRule, Level, str, str]  # rule, level, message and advice of a change


class ChangeList:
    """Collects the changes of one endpoint or of the service, in one direction."""

    __slots__ = ("_direction", "_endpoint", "_location", "found")

    def __init__(self, endpoint: str = "", location: Location | None = None, direction: Direction = "request") -> None:
        self._direction = direction
        self._endpoint = endpoint
        self._location = location
        self.found: list[ContractChange] = []

    def facing(self, direction: Direction) -> ChangeList:
        """Return a list that adds to this one, with changes of another direction."""
        other = ChangeList(self._endpoint, self._location, direction)
        other.found = self.found
        return other

    @property
    def full(self) -> bool:
        """True if the limit of changes is reached."""
        return len(self.found) > MOST_CHANGES

    def flip(self, pointer: str, before: bool | None, after: bool | None, turned_on: Told, turned_off: Told) -> None:
        """Add a change if a switch is turned on or off; None is off."""
        if bool(before) != bool(after):
            rule, level, message, advice = turned_on if after else turned_off
            self.add(rule, level, pointer, message, advice, old=bool(before), new=bool(after))

    def differ(self, pointer: str, before: Any, after: Any, told: Told) -> None:
        """Add a change if two values differ; the message of `told` is what they are."""
        rule, level, what, advice = told
        if before != after:
            self.add(rule, level, pointer, f"{what}: {brief(before)} -> {brief(after)}", advice, old=before, new=after)

    def add(
        self,
        rule: ChangeRule,
        level: Level,
        pointer: str,
        message: str,
        advice: str = "",
        *,
        old: Any = None,
        new: Any = None,
    ) -> None:
        """Add a change. Changes beyond the limit are unknown and therefore count as breaking."""
        if self.full:
            return
        if len(self.found) == MOST_CHANGES:
            rule, level, pointer, old, new = MORE_CHANGES, "breaking", "", None, None
            message, advice = f"only the first {MOST_CHANGES} changes are shown", "Look at these first."
        said = (pointer, message, advice, old, new, self._location)
        self.found.append(ContractChange(rule, self._direction, level, self._endpoint, *said))


def canonical(value: Any) -> str:
    """Return JSON text that is the same exactly for equal values: 1 equals 1.0 but not true."""
    try:
        return msgspec.json.encode(_plain(value), order="sorted").decode()
    except (TypeError, ValueError):  # what JSON cannot express
        return repr(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # JSON writers stop at 64 bits, and Python at some thousand digits.
    return {"int": hex(value)} if isinstance(value, int) and abs(value) >= 1 << 63 else value
