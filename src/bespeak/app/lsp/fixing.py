"""Every safe repair of a text at once, as `bespeak lint --fix` makes them."""

from __future__ import annotations

from collections.abc import Callable

from bespeak.app.lsp.checking import Checked
from bespeak.checks.lint.examine import Examined
from bespeak.checks.lint.fixer import fix_text
from bespeak.text.diagnostics.report import Finding


def is_safe(finding: Finding) -> bool:
    """Whether a finding has a repair that keeps the meaning of the contract."""
    fix = finding.diagnostic.fix
    return bool(finding.edits) and fix is not None and fix.safe


def fix_all(checked: Checked, check: Callable[[str], Checked]) -> str:
    """The text with its safe repairs. `check` looks at each text that comes about."""

    def examine(text: str) -> Examined:
        then = checked if text == checked.text else check(text)
        return Examined(then.findings, subject=then.subject)

    return fix_text(checked.text, examine).text
