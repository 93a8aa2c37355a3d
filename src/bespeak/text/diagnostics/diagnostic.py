"""Finding of a check: rule, severity, message, place and advice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bespeak.text.diagnostics.fix import Fix
from bespeak.text.source.span import Location

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Finding of a check. Errors stop an endpoint or a server from starting; warnings are shown; infos advise."""

    rule: str
    """Stable id of the rule, `P302`."""
    severity: Severity
    message: str
    """Description of the problem, with the offending value."""
    location: Location | None = None
    pointer: str = ""
    """JSON Pointer inside the document, `/endpoint/path`."""
    help: str = ""
    """Advice on what to do."""
    fix: Fix | None = None
    """Automatic fix, if there is one."""
    on_key: bool = False
    """True if the finding is about the key at the pointer, not its value."""

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        where = f" (at {self.pointer})" if self.pointer else ""
        advice = f". {self.help}" if self.help else ""
        return f"{place}{self.severity}[{self.rule}]: {self.message}{where}{advice}"


def has_errors(findings: Iterable[Diagnostic]) -> bool:
    """Return True if any finding is an error."""
    return any(finding.severity == "error" for finding in findings)
