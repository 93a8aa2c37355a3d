"""The findings about one document, collected while it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity, has_errors
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.reading.rules import TOO_MANY_FINDINGS
from bespeak.text.source.span import Location

_MOST: Final = 100
"""A broken document can break every rule in every line; nobody reads more than these."""


class Findings:
    """The findings of one document. A place is looked up only when there is something to report at it."""

    __slots__ = ("found", "locate", "tolerant")

    def __init__(self, locate: Callable[[str], Location], *, tolerant: bool = False) -> None:
        self.locate = locate
        """The place of a pointer."""
        self.tolerant = tolerant
        """Somebody else's document: errors are warnings, and keys nobody knows are none of our business."""
        self.found: list[Diagnostic] = []

    @property
    def failed(self) -> bool:
        """Whether the document cannot be used."""
        return has_errors(self.found)

    @property
    def full(self) -> bool:
        """Whether more findings would help nobody."""
        return len(self.found) > _MOST

    def error(self, rule: Rule, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        """Report what keeps the document from being used."""
        self._add(rule.found(message, None, at, advice, fix, severity="warning" if self.tolerant else "error"))

    def warning(self, rule: Rule, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        """Report what the author should look at."""
        self._add(rule.found(message, None, at, advice, fix, severity="warning"))

    def info(self, rule: Rule, message: str, at: str = "", advice: str = "") -> None:
        """Report what the author may want to know."""
        self._add(rule.found(message, None, at, advice, severity="info"))

    def _add(self, finding: Diagnostic) -> None:
        if len(self.found) < _MOST:
            self.found.append(replace(finding, location=self.locate(finding.pointer)))
        elif len(self.found) == _MOST:
            # The rest of the document may hold errors, so this finding counts as one.
            grave: Severity = "warning" if self.tolerant else "error"
            rest, advice = f"only the first {_MOST} findings are shown", "Repair these first."
            self.found.append(TOO_MANY_FINDINGS.found(rest, self.locate(""), advice=advice, severity=grave))
