"""Approved breaking changes, by fingerprint, with a reason and an optional expiry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from bespeak.checks.evolution.change import ContractChange
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
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
