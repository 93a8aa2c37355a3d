"""Code actions for findings: repairs, ignores, and all safe repairs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from lsprotocol import types

from bespeak.app.lsp.checking import Checked
from bespeak.app.lsp.diagnostics import one, touching
from bespeak.app.lsp.edits import Edit, as_text_edits, repair
from bespeak.app.lsp.fixing import fix_all, is_safe
from bespeak.app.lsp.ignoring import ignore_edits
from bespeak.app.lsp.positions import Positions
from bespeak.text.diagnostics.report import Finding

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
    """Return the code actions for a range, of the requested kinds."""
    only = params.context.only

    def wanted(kind: str) -> bool:
        return only is None or any(kind == one or kind.startswith(f"{one}.") for one in only)

    def action(title: str, kind: str, edits: list[Edit], finding: Finding | None = None) -> types.CodeAction:
        changes = types.TextDocumentEdit(document, [*as_text_edits(edits, positions)])
        found = [one(finding, positions)] if finding else None
        edit = types.WorkspaceEdit(document_changes=[changes])
        return types.CodeAction(title, kind=kind, diagnostics=found, edit=edit)

    actions: list[types.CodeAction] = []
    if wanted(QUICK_FIX):
        here = list(touching(checked.findings, positions, params.range))[:_MOST]
        for finding in here:
            for title, edits, preferred in _repairs(finding, positions):
                made = action(title, QUICK_FIX, edits, finding)
                made.is_preferred = preferred
                actions.append(made)
        for finding in here:
            edits = ignore_edits(finding, checked, positions)
            if edits:
                actions.append(action(f"Ignore {finding.diagnostic.rule} here", QUICK_FIX, edits, finding))
    if wanted(FIX_ALL) and any(map(is_safe, checked.findings)):
        text = fix_all(checked, check)
        if text != checked.text:
            whole = Edit(0, len(checked.text), text)
            actions.append(action("Fix all safe problems", FIX_ALL, [whole]))
    return actions


def _repairs(finding: Finding, positions: Positions) -> Iterator[tuple[str, list[Edit], bool]]:
    fix = finding.diagnostic.fix
    edits = repair(finding, positions)
    if fix is not None and edits:
        rule = finding.diagnostic.rule
        yield (f"{fix.title} ({rule})" if fix.safe else f"{fix.title} ({rule}, unsafe: review it)"), edits, fix.safe
