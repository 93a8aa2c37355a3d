"""The result of a comparison: shown and approved changes, whether it fails, and machine-readable forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from bespeak.checks.evolution import approvals, contract_diff, endpoint_diff, schema_diff
from bespeak.checks.evolution import change as changes_
from bespeak.checks.evolution.approvals import Approval
from bespeak.checks.evolution.change import CATEGORIES, LEVELS, Category, ContractChange, Level
from bespeak.contract.catalog.catalog import parse_version
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, declared_in
from bespeak.text.diagnostics.report import Finding, Report

TOO_SMALL: Final = Rule("C195", "version-bump-too-small", "SHOULD", "")

# Every rule that a comparison of contracts can name, by id. Settings of the lint do not select them.
_OTHERS: Final = declared_in(changes_, contract_diff, endpoint_diff, schema_diff, approvals)
RULES: Final = dict(sorted({**_OTHERS, TOO_SMALL.id: TOO_SMALL}.items()))

Bump = Literal["none", "patch", "minor", "major"]
Step = Literal["backwards", "none", "patch", "minor", "major"]

_STEPS: Final[tuple[Step, ...]] = ("backwards", "none", "patch", "minor", "major")  # bumps from smallest to largest

_BEFORE_ONE: Final[dict[Bump, Bump]] = {"major": "minor", "minor": "patch"}
"""Bumps below 1.0.0 (Semantic Versioning 4): anything may change, and by custom the minor number says so."""


def version_step(old: str, new: str) -> Step:
    """Return the bump from one version to another; text that is not a version counts as backwards."""
    before, after = parse_version(old), parse_version(new)
    if before is None or after is None or after < before:
        return "backwards"
    if after.major > before.major:
        return "major"
    if after.minor > before.minor:
        return "minor"
    return "patch" if after > before else "none"


def suffices(step: Step, needed: Bump) -> bool:
    """Return True if a bump is at least the required one."""
    return _STEPS.index(step) >= _STEPS.index(needed)


def needed_bump(changes: Iterable[ContractChange]) -> Bump:
    """Return the smallest bump for these changes: major if one breaks, patch if only prose changed."""
    bump: Bump = "none"
    for change in changes:
        if change.level == "breaking":
            return "major"
        if change.about.category != "PROSE":
            bump = "minor"
        elif bump == "none":
            bump = "patch"
    return bump


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionAdvice:
    needed: Bump
    old: str | None = None
    new: str | None = None
    step: Step | None = None  # declared bump; None unless both versions are MAJOR.MINOR.PATCH

    @property
    def too_small(self) -> bool:
        """True if the declared bump is smaller than the required one."""
        return self.step is not None and not suffices(self.step, self.needed)

    def __str__(self) -> str:
        if self.needed == "none":
            return "Nothing changed." if self.step in (None, "none") else "Only the version changed."
        if self.step is None:
            return f"These changes need a {self.needed} version bump."
        step = {"none": "no bump", "backwards": "a downgrade"}.get(self.step, f"a {self.step} bump")
        message = f"These changes need a {self.needed} bump; {self.old} -> {self.new} is {step}"
        return f"{message}: too small." if self.too_small else f"{message}."

    def finding(self) -> Diagnostic | None:
        if not self.too_small:
            return None
        return TOO_SMALL.found(str(self).removesuffix("."), advice=f"Declare a version with a {self.needed} bump.")

    def to_json(self) -> dict[str, object]:
        return {
            "needed_bump": self.needed,
            "old_version": self.old,
            "new_version": self.new,
            "version_step": self.step,
            "too_small": self.too_small,
        }


def advise(changes: Iterable[ContractChange], old: str | None, new: str | None) -> VersionAdvice:
    """Compare the declared bump with the changes. Content hashes and dates are not comparable versions."""
    needed = needed_bump(changes)
    before = parse_version(old or "")
    if old is None or new is None or before is None or parse_version(new) is None:
        return VersionAdvice(needed=needed, old=old, new=new)
    if before.major == 0:
        needed = _BEFORE_ONE.get(needed, needed)
    return VersionAdvice(needed=needed, old=old, new=new, step=version_step(old, new))


FailOn = Literal["breaking", "risky", "any", "bump", "none"]

_FAILING: Final[dict[FailOn, tuple[Level, ...]]] = {
    "breaking": ("breaking",),
    "risky": ("breaking", "risky"),
    "any": LEVELS,
    "bump": (),
    "none": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    old: str
    new: str
    changes: list[ContractChange]  # changes of the chosen category
    hidden: int = 0  # changes of wider categories
    category: Category = "CONTRACT"
    fail_on: FailOn = "breaking"
    version: VersionAdvice
    approved: Mapping[str, Approval] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)

    @property
    def open(self) -> list[ContractChange]:
        """Changes that are not approved."""
        return [change for change in self.changes if change.fingerprint not in self.approved]

    @property
    def failing(self) -> list[ContractChange]:
        """Changes that make the comparison fail."""
        return [change for change in self.open if change.level in _FAILING[self.fail_on]]

    @property
    def failed(self) -> bool:
        """True if the command should exit with 1."""
        return bool(self.failing) or (self.fail_on == "bump" and self.version.too_small)

    @property
    def other_findings(self) -> list[Diagnostic]:
        """Findings except the one about the version, which reports for people print as the advice."""
        return [finding for finding in self.findings if finding.rule != TOO_SMALL.id]

    def count(self) -> dict[str, int]:
        """Count changes by level, with approved ones counted separately."""
        counts: dict[str, int] = dict.fromkeys(LEVELS, 0)
        for change in self.open:
            counts[change.level] += 1
        return {**counts, "approved": len(self.changes) - len(self.open)}

    def summary(self) -> str:
        found = ", ".join(f"{number} {name}" for name, number in self.count().items() if number)
        rest = f" {self.hidden} more with a wider --category." if self.hidden else ""
        return f"{found or 'No changes'}.{rest}"

    def to_json(self) -> dict[str, Any]:
        return {
            "old": self.old,
            "new": self.new,
            "category": self.category,
            "fail_on": self.fail_on,
            "failed": self.failed,
            "summary": {**self.count(), "hidden": self.hidden},
            "version": self.version.to_json(),
            "changes": [{**change.to_json(), "approved": self._approval(change)} for change in self.changes],
            "findings": self.findings,
        }

    def _approval(self, change: ContractChange) -> dict[str, Any] | None:
        approval = self.approved.get(change.fingerprint)
        if approval is None:
            return None
        return {"reason": approval.reason, "expires": approval.expires.isoformat() if approval.expires else None}

    def findings_report(self) -> Report:
        """Return the comparison as findings; an approved change is only informational."""
        findings = [Finding(self._diagnostic(change), change.fingerprint) for change in self.changes]
        return Report(
            findings=[*findings, *(Finding(finding) for finding in self.findings)],
            files=sorted({change.location.file for change in self.changes if change.location}),
            rules=RULES,
        )

    def _diagnostic(self, change: ContractChange) -> Diagnostic:
        approval = self.approved.get(change.fingerprint)
        diagnostic = change.diagnostic()
        if approval is None:
            return diagnostic
        return replace(diagnostic, severity="info", help=f"Approved: {approval.reason}")


def within(changes: Iterable[ContractChange], category: Category) -> list[ContractChange]:
    """Return the changes of a category and of the categories inside it."""
    inner = CATEGORIES[: CATEGORIES.index(category) + 1]
    return [change for change in changes if change.about.category in inner]


def by_endpoint(changes: Iterable[ContractChange]) -> dict[str, list[ContractChange]]:
    """Group changes by endpoint in their order, worst first within a group."""
    groups: dict[str, list[ContractChange]] = {}
    for change in changes:
        groups.setdefault(change.endpoint, []).append(change)
    return {name: sorted(group, key=lambda change: LEVELS.index(change.level)) for name, group in groups.items()}


def markdown(report: ChangeReport) -> str:
    """Format the comparison for a pull request."""
    lines = [f"### Contract changes: {_cell(report.old)} → {_cell(report.new)}", ""]
    lines += [f"**{report.summary()}** {_cell(str(report.version))}", ""]
    for endpoint, group in by_endpoint(report.changes).items():
        lines += [f"#### {_cell(endpoint) if endpoint else 'The service'}", ""]
        lines += ["| level | rule | change | what to do |", "| --- | --- | --- | --- |"]
        for change in group:
            approval = report.approved.get(change.fingerprint)
            level, advice = (f"~~{change.level}~~", f"Approved: {approval.reason}") if approval else (change.level, "")
            advice = advice or change.help
            level = f"**{level}**" if level == "breaking" else level
            cells = (level, f"{change.rule} `{change.about.name}`", _cell(change.message), _cell(advice))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += [f"- {finding.rule}: {_cell(finding.message)}" for finding in report.other_findings]
    return "\n".join(lines).rstrip("\n") + "\n"


def _cell(text: str) -> str:
    """Escape text for a table cell; only code markup is kept."""
    plain = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
    return plain.replace("<", "&lt;").replace("@", "&#64;")
