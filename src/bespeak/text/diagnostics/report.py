"""What one run found, as every reporter takes it: findings, the rules behind them, and how much was looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.score import Score

Source = Callable[[str], str | None]
"""Gives the text of a file, or None when it cannot be read."""

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""From the gravest to the lightest."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A stretch of a file and the text to put in its place. Lines and columns count from one; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic as it is reported: with the name it keeps from run to run, and its repair as text."""

    diagnostic: Diagnostic
    fingerprint: str = ""
    """Stays when the file moves around it; see `bespeak.checks.lint.fingerprint`."""
    edits: tuple[Replacement, ...] = ()

    @property
    def file(self) -> str:
        """The file it stands in, or nothing."""
        return self.diagnostic.location.file if self.diagnostic.location else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """What a reporter says about a rule."""

    id: str
    name: str
    severity: Severity
    summary: str
    why: str = ""
    source: str = ""
    """The section of the draft it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run."""

    findings: Sequence[Finding]
    files: Sequence[str] = ()
    """What was checked, clean or not."""
    rules: Mapping[str, RuleText] = field(default_factory=dict)
    """The rules that may be named, by id."""
    source: Source | None = None
    """Gives the texts for code frames; without it they are read from disk."""
    version: str = ""
    """Of bespeak."""
    ignored: int = 0
    """Findings that an ignore in a file or in the configuration hides."""
    baselined: int = 0
    """Findings that were known before."""
    left_out: int = 0
    """Findings beyond the number that was asked for."""
    scores: Sequence[Score] = ()
    """Of the live services among what was checked."""

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The diagnostics alone."""
        return [finding.diagnostic for finding in self.findings]

    def count(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        found = Counter(finding.diagnostic.severity for finding in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    def fixable(self) -> tuple[int, int]:
        """How many findings have a safe repair, and how many one that wants a look."""
        fixes = [finding.diagnostic.fix for finding in self.findings if finding.diagnostic.fix is not None]
        safe = sum(fix.safe for fix in fixes)
        return safe, len(fixes) - safe


def summary(report: Report) -> str:
    """The last line of a run."""
    counts = report.count()
    found = ", ".join(
        _plural(number, "info" if severity == "info" else severity) for severity, number in counts.items() if number
    )
    named = (*report.files, *(finding.file for finding in report.findings))
    noun = "document" if any("://" in file for file in named) else "file"
    parts = [f"Checked {_plural(len(report.files), noun)}: {found or 'nothing found'}."]
    if report.left_out:
        parts.append(f"{report.left_out} more are not shown.")
    hidden = [(report.ignored, "ignored"), (report.baselined, "in the baseline")]
    if any(number for number, _ in hidden):
        parts.append(", ".join(f"{number} {how}" for number, how in hidden if number) + ".")
    safe, unsafe = report.fixable()
    if safe:
        parts.append(f"{safe} can be fixed with --fix.")
    if unsafe:
        parts.append(f"{unsafe}{' more' if safe else ''} can be fixed with --fix --unsafe-fixes.")
    return " ".join(parts)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
