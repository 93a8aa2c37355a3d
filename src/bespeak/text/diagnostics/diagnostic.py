"""Findings of checks: the diagnostic, its rule, its automatic fix, and how values are quoted in its message."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Final, Literal, Protocol

from bespeak.text.source.tree import Change, Location, TextEdit, Tree


@dataclass(frozen=True, slots=True)
class Fix:
    """Automatic fix of a finding."""

    title: str  # imperative description: `Write BOOK`
    changes: tuple[Change, ...]
    safe: bool = True  # True if the fix preserves the meaning of the contract; an unsafe fix needs a review
    edits: tuple[TextEdit, ...] = ()  # edits of the text itself, for a fix in a comment, which has no pointer


def instead(at: str, meant: str, otherwise: str = "", *, safe: bool = False) -> tuple[str, Fix | None]:
    """Return the advice to write `meant` at a pointer, with its fix; without it the advice `otherwise` alone."""
    fix = Fix(f"Write {meant}", (Change("replace", at, meant),), safe)
    return (f"Write {meant}.", fix) if meant else (otherwise, None)


Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Finding of a check. Errors stop an endpoint or a server from starting; warnings are shown; infos advise."""

    rule: str  # stable id of the rule, `P302`
    severity: Severity
    message: str  # description of the problem, with the offending value
    location: Location | None = None
    pointer: str = ""  # JSON Pointer inside the document, `/endpoint/path`
    help: str = ""  # advice on what to do
    fix: Fix | None = None  # automatic fix, if there is one
    on_key: bool = False  # True if the finding is about the key at the pointer, not its value

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        where = f" (at {self.pointer})" if self.pointer else ""
        advice = f". {self.help}" if self.help else ""
        return f"{place}{self.severity}[{self.rule}]: {self.message}{where}{advice}"


def has_errors(findings: Iterable[Diagnostic]) -> bool:
    return any(finding.severity == "error" for finding in findings)


Normative = Literal["MUST", "SHOULD", "style"]
Fixable = Literal["none", "safe", "unsafe"]
SEVERITY: Final[dict[Normative, Severity]] = {"MUST": "error", "SHOULD": "warning", "style": "info"}
"""Severity by binding: a demand of a draft is an error, a recommendation a warning, style an info."""


class Located(Protocol):
    """The subject of a finding, such as an endpoint. Messages begin with its text."""

    @property
    def location(self) -> Location | None:
        """The place where it is declared."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its id never changes its meaning. What people read about it is on its page."""

    id: str  # stable id, `P302`
    name: str  # short name of the finding: words joined by hyphens
    normative: Normative  # how binding it is
    source: str  # section of the draft, such as `AGTP-API 5.1`
    fix: Fixable = "none"  # kind of the automatic fix: a safe one keeps the meaning, an unsafe one needs a review

    @property
    def severity(self) -> Severity:
        """Severity of a finding, unless its reporter says otherwise."""
        return SEVERITY[self.normative]

    @property
    def page(self) -> str:
        """Name of the page that explains it: the id, unless several rules share a page."""
        return self.id

    @property
    def is_agis(self) -> bool:
        """True if only AGIS demands it. In other documents it is advice: AGTP-API decides what is valid there."""
        return self.source.startswith("AGIS")

    def at(
        self, of: Located, pointer: str, message: str, advice: str = "", fix: Fix | None = None, *, on_key: bool = False
    ) -> Diagnostic:
        """Report a finding in an endpoint. Pointers, also of a fix, start at the endpoint and use the model's names."""
        place, message = of.location, f"{of}: {message}"
        return Diagnostic(self.id, self.severity, message, place, f"/endpoint{pointer}", advice, fix, on_key)

    def inside(
        self, pointer: str, message: str, advice: str = "", fix: Fix | None = None, *, on_key: bool = False
    ) -> Diagnostic:
        """Report a finding in a document other than an endpoint, at a pointer from its root."""
        return Diagnostic(self.id, self.severity, message, None, pointer, advice, fix, on_key)

    def in_tree(
        self, tree: Tree, pointer: str, message: str, advice: str = "", fix: Fix | None = None, *, on_key: bool = False
    ) -> Diagnostic:
        place = tree.locate(pointer, key=on_key)
        return Diagnostic(self.id, self.severity, message, place, pointer, advice, fix, on_key)

    def found(
        self,
        message: str,
        location: Location | None = None,
        pointer: str = "",
        advice: str = "",
        fix: Fix | None = None,
        *,
        severity: Severity | None = None,
    ) -> Diagnostic:
        """Report a finding at a place; `severity` is for a finding that is graver or lighter than the rule."""
        return Diagnostic(self.id, severity or self.severity, message, location, pointer, advice, fix)


def declared_in(*modules: ModuleType) -> dict[str, Rule]:
    """Return the rules that modules declare as constants, alone or as values of a table, sorted by id."""
    constants = [value for module in modules for value in vars(module).values()]
    tables = [value.values() for value in constants if isinstance(value, dict)]
    found = {one.id: one for value in (constants, *tables) for one in value if isinstance(one, Rule)}
    return dict(sorted(found.items()))


_LONGEST: Final = 160
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxlist = _short.maxdict = 4


def brief(value: object) -> str:
    """Format a value for a message."""
    try:
        text = _short.repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        return "..."
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unquoted(text: str) -> str:
    """Format a text for a message that needs no quotation marks around it: a name in backquotes, a value to write."""
    return brief(text)[1:-1]


def printable(text: str) -> str:
    """Escape unprintable characters, so that the text cannot move the cursor or colour the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
