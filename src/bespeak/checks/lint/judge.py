"""Applies the settings to findings: which are shown, and with which severity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bespeak.checks.lint.config import Config
from bespeak.checks.lint.fingerprint import fingerprint
from bespeak.checks.lint.path_pattern import matches
from bespeak.checks.lint.registry import ALWAYS, all_rules
from bespeak.checks.lint.selection import enabled, severities, specificity
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.report import Finding, Replacement


class Judge:
    """Settings of a file, applied to its findings."""

    def __init__(self, config: Config) -> None:
        rules = all_rules().values()
        self.config = config
        self._enabled = enabled(
            rules, (*config.select, *config.extend_select), config.ignore, conformance=config.conformance
        )
        self._known = frozenset(rule.id for rule in rules)
        self._severities = severities(rules, config.severity)
        self._demanded = frozenset(rule.id for rule in rules if config.conformance and rule.normative == "MUST")

    def is_on(self, rule: str) -> bool:
        """Return True if a rule is enabled."""
        return rule in self._enabled or rule in ALWAYS or rule not in self._known

    def stands(self, rule: str) -> bool:
        """Return True if findings of a rule cannot be hidden by ignores in files, by path or in a baseline."""
        return rule in ALWAYS or rule in self._demanded

    def severity(self, rule: str) -> Severity | None:
        """Return the severity set for a rule, or None."""
        return None if rule in ALWAYS or rule in self._demanded else self._severities.get(rule)

    def weighed(self, finding: Diagnostic) -> Diagnostic:
        """Return the finding with its configured severity."""
        severity = self.severity(finding.rule)
        return finding if severity in (None, finding.severity) else replace(finding, severity=severity)

    def finding(
        self, diagnostic: Diagnostic, path: str, data: Any = None, edits: tuple[Replacement, ...] = ()
    ) -> Finding:
        """Return what is reported for a file: the finding with its configured severity and its fingerprint."""
        return Finding(self.weighed(diagnostic), fingerprint(diagnostic, path, data), edits)

    def visible(self, findings: Iterable[Diagnostic], path: str) -> tuple[list[Diagnostic], int]:
        """Return the findings of enabled rules that are not ignored for their file, and the number of the ignored."""
        enabled = [finding for finding in findings if self.is_on(finding.rule)]
        left = [finding for finding in enabled if not self.is_ignored(finding, path)]
        return left, len(enabled) - len(left)

    def is_ignored(self, finding: Diagnostic, path: str) -> bool:
        """Return True if the finding is ignored for its file, a path relative to the settings."""
        if self.stands(finding.rule):
            return False
        rule = all_rules().get(finding.rule)
        return rule is not None and any(
            matches(entry.pattern, path)
            and (not entry.pointer or f"{finding.pointer}/".startswith(f"{entry.pointer}/"))
            and any(specificity(selector, rule) >= 0 for selector in entry.selectors)
            for entry in self.config.per_path_ignores
        )
