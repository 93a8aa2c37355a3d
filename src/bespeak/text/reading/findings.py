"""Findings of one document, collected while it is read."""

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
"""Maximum number of findings per document: a broken one can break every rule in every line."""


class Findings:
    """Findings of one document. Places are looked up only for reported findings."""

    __slots__ = ("found", "locate", "tolerant")

    def __init__(self, locate: Callable[[str], Location], *, tolerant: bool = False) -> None:
        self.locate = locate
        """Function that returns the place of a pointer."""
        self.tolerant = tolerant
        """True for a third-party document: errors become warnings, and unknown keys are ignored."""
        self.found: list[Diagnostic] = []

    @property
    def failed(self) -> bool:
        """True if the document cannot be used."""
        return has_errors(self.found)

    @property
    def full(self) -> bool:
        """True if the maximum number of findings is reached."""
        return len(self.found) > _MOST

    def error(self, rule: Rule, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        """Report an error, which makes the document unusable."""
        self._add(rule.found(message, None, at, advice, fix, severity="warning" if self.tolerant else "error"))

    def warning(self, rule: Rule, message: str, at: str = "", advice: str = "", fix: Fix | None = None) -> None:
        """Report a warning."""
        self._add(rule.found(message, None, at, advice, fix, severity="warning"))

    def info(self, rule: Rule, message: str, at: str = "", advice: str = "") -> None:
        """Report advice."""
        self._add(rule.found(message, None, at, advice, severity="info"))

    def _add(self, finding: Diagnostic) -> None:
        if len(self.found) < _MOST:
            self.found.append(replace(finding, location=self.locate(finding.pointer)))
        elif len(self.found) == _MOST:
            # The rest of the document may hold errors, so this finding counts as one.
            grave: Severity = "warning" if self.tolerant else "error"
            rest, advice = f"only the first {_MOST} findings are shown", "Fix these first."
            self.found.append(TOO_MANY_FINDINGS.found(rest, self.locate(""), advice=advice, severity=grave))
