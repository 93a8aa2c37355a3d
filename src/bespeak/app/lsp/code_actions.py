"""Code actions for findings: repairs, ignores, and all safe repairs at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from lsprotocol import types

from bespeak.app.lsp.cursor import Positions
from bespeak.app.lsp.diagnostics import CheckedText, to_diagnostic, touching
from bespeak.checks.lint.document import Examined, replacements
from bespeak.checks.lint.fixer import fix_text
from bespeak.checks.lint.rule_index import find_rule
from bespeak.checks.lint.suppress import UNKNOWN, UNREASONED, UNUSED, read_ignores
from bespeak.documents.notation_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix
from bespeak.text.diagnostics.report import Finding
from bespeak.text.reading.table import IGNORES
from bespeak.text.source.pointer import child, parent, value_at
from bespeak.text.source.tree import Change, Span, TextEdit, Tree, apply_edits, insertion

_IGNORE: Final = re.compile(r"#[ \t]*+bespeak:[ \t]*+ignore\[[^\]\n]*+(?=\])")
_INDENT: Final = re.compile(r"[ \t]*+")
_HOUSEKEEPING: Final = frozenset({UNUSED.id, UNKNOWN.id, UNREASONED.id})  # rules about ignores, which cannot be ignored


def ignore_edits(finding: Finding, checked: CheckedText, positions: Positions) -> list[TextEdit]:
    """Return the edits that ignore a finding; empty if no ignore would hide it."""
    rule = finding.diagnostic.rule
    if checked.subject is None or checked.judge is None or checked.judge.stands(rule) or rule in _HOUSEKEEPING:
        return []
    tree = parse_notation(checked.text, checked.subject.tree.file)
    if isinstance(tree, Diagnostic):
        return []
    if tree.notation != "json":
        for edit, line in _comments(finding.diagnostic, positions):
            if _is_effective(apply_edits(checked.text, [edit]), tree, rule, line):
                return [edit]
    return _key(finding.diagnostic, tree, positions)


def _comments(finding: Diagnostic, positions: Positions) -> Iterator[tuple[TextEdit, int]]:
    """Yield candidate comments, each with the resulting line of the finding."""
    place = finding.location
    if place is None or not place.line:
        return
    text, mark = positions.text, f"# bespeak: ignore[{finding.rule}]"
    start = positions.from_finding(place.line, 1)
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)].rstrip("\r")
    known = _IGNORE.search(line)
    if known is not None:
        yield insertion(start + known.end(), f", {finding.rule}"), place.line
    stop = start + len(line.rstrip())
    yield TextEdit(Span(stop, start + len(line)), f"  {mark}"), place.line
    indent = _INDENT.match(line)
    feed = "\r\n" if "\r\n" in text else "\n"
    yield insertion(start, f"{indent[0] if indent else ''}{mark}{feed}"), place.line + 1


def _is_effective(text: str, before: Tree, rule: str, line: int) -> bool:
    """Return True if a text ignores a rule on a line and has the same data as before."""
    after = parse_notation(text, before.file)
    if isinstance(after, Diagnostic) or after.data != before.data:
        return False
    ignores, _ = read_ignores(after, find_rule, require_reason=False)
    return any(ignore.rule == rule and ignore.line == line for ignore in ignores)


def _key(finding: Diagnostic, tree: Tree, positions: Positions) -> list[TextEdit]:
    """Return the edits that add the ignore key to the mapping of the finding."""
    at = finding.pointer
    while at and not isinstance(value_at(tree.data, at), dict):
        at = parent(at)
    mapping = value_at(tree.data, at)
    if not isinstance(mapping, dict):
        return []
    known = mapping.get(IGNORES)
    if isinstance(known, dict):
        change = Change("insert", child(at, IGNORES), "", finding.rule)
    elif isinstance(known, list):
        change = Change("append", child(at, IGNORES), finding.rule)
    else:
        change = Change("insert", at, {finding.rule: ""}, IGNORES)
    return [positions.edit(made) for made in replacements(replace(finding, fix=Fix("Ignore it", (change,))), tree)]


FIX_ALL: Final = "source.fixAll.bespeak"
QUICK_FIX: Final = types.CodeActionKind.QuickFix.value
_MOST: Final = 20  # maximum number of findings with actions in one menu


def code_actions(
    checked: CheckedText,
    document: types.OptionalVersionedTextDocumentIdentifier,
    params: types.CodeActionParams,
    positions: Positions,
    check: Callable[[str], CheckedText],
) -> list[types.CodeAction]:
    """Return the code actions for a range, of the requested kinds. `check` checks a repaired text."""

    def wanted(kind: str) -> bool:
        only = params.context.only
        return only is None or any(kind == one or kind.startswith(f"{one}.") for one in only)

    def action(title: str, kind: str, edits: Iterable[TextEdit], finding: Finding | None = None) -> types.CodeAction:
        made = [types.TextEdit(positions.span(edit.span.start, edit.span.end), edit.text) for edit in edits]
        changes = types.TextDocumentEdit(document, made)
        found = [to_diagnostic(finding, positions)] if finding else None
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
            actions.append(action("Fix all safe problems", FIX_ALL, [TextEdit(Span(0, len(checked.text)), text)]))
    return actions


def is_safe(finding: Finding) -> bool:
    """Return True if a finding has a repair that preserves the meaning of the contract."""
    fix = finding.diagnostic.fix
    return bool(finding.edits) and fix is not None and fix.safe


def fix_all(checked: CheckedText, check: Callable[[str], CheckedText]) -> str:
    """Return the text with its safe repairs, as `bespeak lint --fix` makes them."""

    def examine(text: str) -> Examined:
        then = checked if text == checked.text else check(text)
        return Examined(then.findings, subject=then.subject)

    return fix_text(checked.text, examine).text
