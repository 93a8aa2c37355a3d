"""The result of a comparison: shown and approved changes, whether it fails, and machine-readable forms.

Breaking changes are approved by their fingerprint, with a reason and an optional expiry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final, Literal

from bespeak.checks.evolution import change as changes_
from bespeak.checks.evolution import contract_diff, schema_diff
from bespeak.checks.evolution.change import CATEGORIES, LEVELS, Category, ContractChange
from bespeak.contract.catalog.catalog import parse_version
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief, declared_in
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.source.toml_tree import parse_toml
from bespeak.text.source.tree import Location, SyntaxFault

INVALID: Final = Rule("C196", "invalid-approvals", "MUST", "")
EXPIRED: Final = Rule("C197", "expired-approval", "SHOULD", "")
UNUSED: Final = Rule("C198", "unused-approval", "SHOULD", "")

APPROVALS: Final = "bespeak-approvals.toml"

_KEYS: Final = frozenset({"fingerprint", "reason", "expires", "change"})
_HEADING: Final = "# Changes of the contract that are known to break clients, and the reasons for making them.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    fingerprint: str
    reason: str
    expires: date | None = None  # last day on which it counts
    change: str = ""  # description of the change, for people who read the list
    location: Location | None = None

    def expired(self, today: date) -> bool:
        """Return True if the last day is over."""
        return self.expires is not None and self.expires < today


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedChanges:
    """The changes of a comparison, with approvals applied."""

    approved: Mapping[str, Approval]  # approvals by the fingerprint of the change
    findings: list[Diagnostic]  # expired approvals, and approvals of changes that do not exist


def parse_approvals(text: str, file: str) -> tuple[list[Approval], list[Diagnostic]]:
    """Parse a list of approvals and return its findings. If there is an error, do not use the list."""
    tree = parse_toml(text, file)
    if isinstance(tree, SyntaxFault):
        return [], [INVALID.found(f"this is not TOML: {tree.message}", tree.location)]
    findings: list[Diagnostic] = []
    entries = tree.data.get("approval", [])
    for key in tree.data.keys() - {"approval"}:
        message = f"`{key}` is not a known key; write each approval as [[approval]]"
        findings.append(INVALID.found(message, tree.locate(f"/{key}"), f"/{key}"))
    if not isinstance(entries, list):
        message = "`approval` is not a list; write [[approval]]"
        return [], [INVALID.found(message, tree.locate("/approval"), "/approval")]
    approvals: list[Approval] = []
    for index, entry in enumerate(entries):
        at = f"/approval/{index}"
        read = _read(entry, tree.locate(at))
        if isinstance(read, Approval):
            approvals.append(read)
        else:
            findings.append(INVALID.found(read, tree.locate(at), at))
    return approvals, findings


def _read(entry: object, location: Location) -> Approval | str:
    if not isinstance(entry, dict):
        return "an approval is a table with `fingerprint` and `reason`"
    if unknown := sorted(entry.keys() - _KEYS):
        return f"`{unknown[0]}` is not a known key of an approval; known keys: {', '.join(sorted(_KEYS))}"
    fingerprint, reason, change = entry.get("fingerprint"), entry.get("reason"), entry.get("change", "")
    if not isinstance(fingerprint, str) or not fingerprint:
        return f"`fingerprint` is {brief(fingerprint)}; write the one that `bespeak diff` shows"
    if not isinstance(reason, str) or not reason.strip():
        return f"the approval of {brief(fingerprint)} has no `reason`"
    expires = entry.get("expires")
    if isinstance(expires, str):
        try:
            expires = date.fromisoformat(expires)
        except ValueError:
            return f"`expires` is {brief(expires)}; write a date such as 2027-01-31"
    if isinstance(expires, datetime):
        expires = expires.date()
    if expires is not None and not isinstance(expires, date):
        return f"`expires` is {brief(expires)}; write a date such as 2027-01-31"
    told = change if isinstance(change, str) else ""
    return Approval(fingerprint=fingerprint, reason=reason, expires=expires, change=told, location=location)


def judge(changes: Iterable[ContractChange], approvals: Iterable[Approval], today: date) -> JudgedChanges:
    """Apply approvals to changes; report approvals that have no effect."""
    present = {change.fingerprint for change in changes}
    listed = list(approvals)
    approved = {
        approval.fingerprint: approval
        for approval in listed
        if approval.fingerprint in present and not approval.expired(today)
    }
    findings: list[Diagnostic] = []
    for approval in listed:
        about = f" ({approval.change})" if approval.change else ""
        if approval.fingerprint not in present:
            message, advice = f"the approval {approval.fingerprint}{about} matches no change", "Remove the entry."
            findings.append(UNUSED.found(message, approval.location, advice=advice))
        elif approval.fingerprint not in approved:
            message = f"the approval {approval.fingerprint}{about} expired on {approval.expires}"
            advice = "Make the change compatible, or approve it again."
            findings.append(EXPIRED.found(message, approval.location, advice=advice))
    return JudgedChanges(approved=approved, findings=findings)


def approve(changes: Iterable[ContractChange], reason: str, expires: date | None = None) -> list[Approval]:
    return [
        Approval(
            fingerprint=change.fingerprint,
            reason=reason,
            expires=expires,
            change=f"{change.endpoint}: {change.message}" if change.endpoint else change.message,
        )
        for change in changes
    ]


def with_entries(text: str, approvals: Iterable[Approval]) -> str:
    """Append entries to a list. The existing text, including comments, is kept."""
    parts = [text.rstrip("\n") + "\n" if text.strip() else _HEADING, *(_entry(approval) for approval in approvals)]
    return "\n".join(parts)


def _entry(approval: Approval) -> str:
    lines = ["[[approval]]", f"fingerprint = {_quoted(approval.fingerprint)}"]
    if approval.change:
        lines.append(f"change = {_quoted(approval.change)}")
    lines.append(f"reason = {_quoted(approval.reason)}")
    if approval.expires is not None:
        lines.append(f"expires = {approval.expires.isoformat()}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if "\ud800" <= char <= "\udfff":  # no character at all, and no file can hold it
        return "\\uFFFD"
    return char if char.isprintable() else f"\\U{ord(char):08X}"


TOO_SMALL: Final = Rule("C195", "version-bump-too-small", "SHOULD", "")

# Every rule that a comparison of contracts can name, by id. Settings of the lint do not select them.
_OWN: Final = {rule.id: rule for rule in (TOO_SMALL, INVALID, EXPIRED, UNUSED)}
RULES: Final = dict(sorted({**declared_in(changes_, contract_diff, schema_diff), **_OWN}.items()))

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
    parts: tuple[Step, ...] = ("major", "minor", "patch")
    return next((part for part in parts if getattr(after, part) > getattr(before, part)), "none")


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
        said = {"needed_bump": self.needed, "old_version": self.old, "new_version": self.new}
        return {**said, "version_step": self.step, "too_small": self.too_small}


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

_FAILING: Final[dict[FailOn, int]] = {"breaking": 1, "risky": 2, "any": 3, "bump": 0, "none": 0}
"""Number of levels, the worst first, that make a comparison fail."""


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
        return [change for change in self.open if change.level in LEVELS[: _FAILING[self.fail_on]]]

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
