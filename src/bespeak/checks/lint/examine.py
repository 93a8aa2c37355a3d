"""Findings of one text under its settings, without disabled and ignored ones. Editors and CI share it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bespeak.checks.lint.context import Context
from bespeak.checks.lint.judge import Judge
from bespeak.checks.lint.registry import find_rule
from bespeak.checks.lint.run import Checked, check_text, located
from bespeak.checks.lint.subject import Subject
from bespeak.checks.lint.suppress import suppress
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Replacement
from bespeak.text.source.tree import Tree


@dataclass(frozen=True, slots=True)
class Examined:
    """Findings of one text after the settings and ignores are applied."""

    findings: tuple[Finding, ...]
    ignored: int = 0
    """Number of findings hidden by ignores."""
    subject: Subject | None = None
    """Parsed document; None if the text could not be read."""


def examine(
    text: str,
    shown: str,
    context: Context,
    judge: Judge,
    *,
    path: str = "",
    extra: Iterable[Diagnostic] = (),
    with_edits: bool = False,
) -> Examined:
    """Check a text and return its findings in order.

    `shown` is the file name in findings, `path` the one for patterns and fingerprints. `extra` are findings that
    involve other documents; their pointers set their places. `with_edits` adds fixes as text edits, which is slow.
    """
    return settle(check_text(text, shown, context), judge, path or shown, extra=extra, with_edits=with_edits)


def settle(
    checked: Checked, judge: Judge, path: str, *, extra: Iterable[Diagnostic] = (), with_edits: bool = False
) -> Examined:
    """Apply the settings to the findings of a text."""
    subject = checked.subject
    if subject is None:
        # An unreadable text is always reported, whatever rules are enabled.
        return Examined(tuple(judge.finding(finding, path) for finding in checked.findings))
    tree = subject.tree
    placed = (located(one, tree) for one in extra)
    found, hidden = suppress(
        (finding for finding in (*checked.findings, *placed) if judge.is_on(finding.rule)),
        tree,
        find_rule,
        kept=lambda rule: judge.stands(rule) or not judge.is_on(rule),
        require_reason=judge.config.require_reason,
    )
    left, ignored = judge.visible(found, path)
    findings = (
        judge.finding(finding, path, tree.data, replacements(finding, tree) if with_edits else ()) for finding in left
    )
    return Examined(tuple(sorted(findings, key=order)), hidden + ignored, subject)


def replacements(finding: Diagnostic, tree: Tree) -> tuple[Replacement, ...]:
    """Return the fix of a finding as text replacements; empty if there is none, or if it cannot be made in place."""
    if finding.fix is None:
        return ()
    from bespeak.checks.lint.fix_edits import fix_edits  # noqa: PLC0415 - most runs want no edits

    made: list[Replacement] = []
    for edit in fix_edits(finding.fix, tree) or ():
        place = tree.location(edit.span)
        made.append(Replacement(place.line, place.column, place.end_line, place.end_column, edit.text))
    return tuple(made)


def order(finding: Finding) -> tuple[str, int, int, str, str]:
    """Return the sort key of a finding: file, line, column, rule and message."""
    said = finding.diagnostic
    place = said.location
    line, column = (place.line, place.column) if place else (0, 0)
    return finding.file, line, column, said.rule, said.message
