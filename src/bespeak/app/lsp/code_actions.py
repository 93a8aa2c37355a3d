"""Code actions for findings: repairs, ignores, and all safe repairs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from lsprotocol import types

from bespeak.app.lsp.checking import Checked
from bespeak.app.lsp.diagnostics import one, touching
from bespeak.app.lsp.ignoring import ignore_edits
from bespeak.app.lsp.positions import Positions
from bespeak.checks.lint.examine import Examined
from bespeak.checks.lint.fixer import fix_text
from bespeak.text.diagnostics.report import Finding
from bespeak.text.source.text_edit import TextEdit
from bespeak.text.source.tree import Span

FIX_ALL: Final = "source.fixAll.bespeak"
QUICK_FIX: Final = types.CodeActionKind.QuickFix.value

_MOST: Final = 20
"""Maximum number of findings with actions in one menu."""


def code_actions(
    checked: Checked,
    document: types.OptionalVersionedTextDocumentIdentifier,
    params: types.CodeActionParams,
    positions: Positions,
    check: Callable[[str], Checked],
) -> list[types.CodeAction]:
    """Return the code actions for a range, of the requested kinds. `check` checks a repaired text."""

    def wanted(kind: str) -> bool:
        only = params.context.only
        return only is None or any(kind == one or kind.startswith(f"{one}.") for one in only)

    def action(title: str, kind: str, edits: Iterable[TextEdit], finding: Finding | None = None) -> types.CodeAction:
        changes = types.TextDocumentEdit(document, [positions.for_editor(edit) for edit in edits])
        found = [one(finding, positions)] if finding else None
        edit = types.WorkspaceEdit(document_changes=[changes])
        return types.CodeAction(title, kind=kind, diagnostics=found, edit=edit)

    actions: list[types.CodeAction] = []
    if wanted(QUICK_FIX):
        here = list(touching(checked.findings, positions, params.range))[:_MOST]
        for finding in here:
            fix, rule = finding.diagnostic.fix, finding.diagnostic.rule
            if fix is not None and finding.edits:
                title = f"{fix.title} ({rule})" if fix.safe else f"{fix.title} ({rule}, unsafe: review it)"
                repair = action(title, QUICK_FIX, map(positions.edit, finding.edits), finding)
                repair.is_preferred = fix.safe
                actions.append(repair)
        for finding in here:
            edits = ignore_edits(finding, checked, positions)
            if edits:
                actions.append(action(f"Ignore {finding.diagnostic.rule} here", QUICK_FIX, edits, finding))
    if wanted(FIX_ALL) and any(map(is_safe, checked.findings)):
        text = fix_all(checked, check)
        if text != checked.text:
            whole = TextEdit(Span(0, len(checked.text)), text)
            actions.append(action("Fix all safe problems", FIX_ALL, [whole]))
    return actions


def is_safe(finding: Finding) -> bool:
    """Return True if a finding has a repair that preserves the meaning of the contract."""
    fix = finding.diagnostic.fix
    return bool(finding.edits) and fix is not None and fix.safe


def fix_all(checked: Checked, check: Callable[[str], Checked]) -> str:
    """Return the text with its safe repairs, as `bespeak lint --fix` makes them."""

    def examine(text: str) -> Examined:
        then = checked if text == checked.text else check(text)
        return Examined(then.findings, subject=then.subject)

    return fix_text(checked.text, examine).text
