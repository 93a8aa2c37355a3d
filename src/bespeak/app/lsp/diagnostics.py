"""Findings as LSP diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lsprotocol import types

from bespeak.app.lsp.positions import Positions
from bespeak.checks.lint.suppress import UNUSED
from bespeak.text.diagnostics.diagnostic import Severity
from bespeak.text.diagnostics.report import Finding

SOURCE: Final = "bespeak"
MOST: Final = 1000
"""Maximum number of findings shown per document; more slow an editor down and do not help."""

_SEVERITIES: Final[dict[Severity, types.DiagnosticSeverity]] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def shown(findings: Sequence[Finding], positions: Positions) -> list[types.Diagnostic]:
    """Convert the findings of a document, up to the maximum, followed by the number of the rest."""
    made = [one(finding, positions) for finding in findings[:MOST]]
    if len(findings) > MOST:
        more = f"{len(findings) - MOST} more findings are not shown; `bespeak lint` shows all of them."
        severity = types.DiagnosticSeverity.Information
        made.append(types.Diagnostic(positions.place(None), more, severity, source=SOURCE))
    return made


def one(finding: Finding, positions: Positions) -> types.Diagnostic:
    """Convert a finding. Its `data` identifies it in requests for code actions."""
    said = finding.diagnostic
    return types.Diagnostic(
        range=positions.place(said.location),
        message=f"{said.message}\n{said.help}" if said.help else said.message,
        severity=_SEVERITIES[said.severity],
        code=said.rule,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if said.rule == UNUSED.id else None,
        data={"pointer": said.pointer, "fingerprint": finding.fingerprint},
    )


def touching(findings: Sequence[Finding], positions: Positions, wanted: types.Range) -> Iterator[Finding]:
    """Yield the findings that overlap or touch a range: a cursor is between two characters."""
    start, end = positions.offset(wanted.start), positions.offset(wanted.end)
    for finding in findings[:MOST]:
        place = positions.place(finding.diagnostic.location)
        if positions.offset(place.start) <= end and start <= positions.offset(place.end):
            yield finding
