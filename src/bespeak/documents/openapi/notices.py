"""Findings about one description, limited in number: a thousand operations with one fault give few findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from bespeak.documents.openapi.spot import Spot
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.span import Location

_SHOWN: Final = 10
"""Findings of one rule and severity that are shown in full; the others are counted."""


class Notices:
    """Findings in the order they were reported. The same finding at the same place is reported once."""

    __slots__ = ("_count", "_file", "_found", "_seen")

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[Diagnostic] = []
        self._count: Counter[tuple[Rule, Severity]] = Counter()
        self._seen: set[tuple[str, str, str, str]] = set()

    def error(self, rule: Rule, message: str, at: Spot, advice: str = "") -> None:
        """Report a part of the description that cannot be used."""
        self._add("error", rule, message, at, advice)

    def warning(self, rule: Rule, message: str, at: Spot, advice: str = "") -> None:
        """Report a part that the owner of the facade should check."""
        self._add("warning", rule, message, at, advice)

    def info(self, rule: Rule, message: str, at: Spot, advice: str = "") -> None:
        """Report a decision, for information."""
        self._add("info", rule, message, at, advice)

    def pass_on(self, finding: Diagnostic) -> None:
        """Add a finding of the text reader."""
        self._found.append(finding)

    def all(self) -> list[Diagnostic]:
        """Return the findings to show, followed by the counts of the omitted ones."""
        return [*self._found, *self._rest()]

    def _add(self, severity: Severity, rule: Rule, message: str, at: Spot, advice: str) -> None:
        known = (rule.id, at.document.name, at.at, message)
        if known in self._seen:
            return
        self._seen.add(known)
        self._count[rule, severity] += 1
        if self._count[rule, severity] <= _SHOWN:
            place = at.document.locate(at.at)
            self._found.append(rule.found(message, place, at.at, advice, severity=severity))

    def _rest(self) -> Iterator[Diagnostic]:
        for (rule, severity), count in self._count.items():
            if count > _SHOWN:
                message = f"{count - _SHOWN:,} more findings of {rule.id} are not shown"
                advice = "Fix the listed ones first."
                yield rule.found(message, Location(self._file), advice=advice, severity=severity)
