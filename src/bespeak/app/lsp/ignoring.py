"""Ignoring one finding in place: with a comment, or with a key in a notation without comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from bespeak.app.lsp.checking import Checked
from bespeak.app.lsp.positions import Positions
from bespeak.checks.lint.examine import replacements
from bespeak.checks.lint.registry import find_rule
from bespeak.checks.lint.suppress import UNKNOWN, UNREASONED, UNUSED, read_ignores
from bespeak.documents.notation_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.report import Finding
from bespeak.text.reading.table import IGNORES
from bespeak.text.source.change import Change
from bespeak.text.source.pointer import child, parent, value_at
from bespeak.text.source.text_edit import TextEdit, apply_edits, insertion
from bespeak.text.source.tree import Span, Tree

_IGNORE: Final = re.compile(r"#[ \t]*+bespeak:[ \t]*+ignore\[[^\]\n]*+(?=\])")
_INDENT: Final = re.compile(r"[ \t]*+")
_HOUSEKEEPING: Final = frozenset({UNUSED.id, UNKNOWN.id, UNREASONED.id})
"""Rules about ignores, which cannot be ignored."""


def ignore_edits(finding: Finding, checked: Checked, positions: Positions) -> list[TextEdit]:
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
    start = positions.line_start(place.line)
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
    fix = Fix("Ignore it", (change,))
    return [positions.edit(made) for made in replacements(replace(finding, fix=fix), tree)]
