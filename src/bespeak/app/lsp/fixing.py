"""All safe repairs of a text at once, as in `bespeak lint --fix`."""

from __future__ import annotations

from collections.abc import Callable

from bespeak.app.lsp.checking import Checked
from bespeak.checks.lint.examine import Examined
from bespeak.checks.lint.fixer import fix_text
from bespeak.text.diagnostics.report import Finding


def is_safe(finding: Finding) -> bool:
    """Return True if a finding has a repair that preserves the meaning of the contract."""
    fix = finding.diagnostic.fix
    return bool(finding.edits) and fix is not None and fix.safe


def fix_all(checked: Checked, check: Callable[[str], Checked]) -> str:
    """Return the text with its safe repairs. `check` checks each intermediate text."""

    def examine(text: str) -> Examined:
        then = checked if text == checked.text else check(text)
        return Examined(then.findings, subject=then.subject)

    return fix_text(checked.text, examine).text
