"""Ignores in a document: findings that its author accepts, each with a reason.

    path: /rooms/book          # bespeak: ignore[P302] a room called Book
    "x-bespeak-ignore": {"P302": "a room called Book"}

A comment applies to its line or, alone on a line, to the next one. The key applies to its mapping and everything
below; in the root, to the whole document.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.reading.table import IGNORES as KEY
from bespeak.text.source.pointer import child, nodes, parent
from bespeak.text.source.tree import Change, Location, Span, TextEdit, Tree, deletion

UNUSED: Final = Rule("D190", "unused-ignore", "SHOULD", "bespeak", fix="safe")
UNKNOWN: Final = Rule("D191", "ignore-without-rule", "MUST", "bespeak")
UNREASONED: Final = Rule("D192", "ignore-without-reason", "SHOULD", "bespeak")

_COMMENT: Final = re.compile(
    r"\#[ \t]*+bespeak:[ \t]*+(?P<what>ignore-file|ignore)(?![\w-])"
    r"(?:\[(?P<rules>[^\]\n]*+)\])?(?P<reason>[^\n]*+)"
)
_LINE: Final = re.compile(r"^[ \t]*+(?P<content>[^\n]{0,1})", re.MULTILINE)
_SPACED_MARK: Final = re.compile(r"bespeak:[ \t]*+ignore")

FindRule = Callable[[str], Rule | None]


@dataclass(slots=True)
class Ignore:
    rule: str
    location: Location
    line: int | None = None  # line it applies to; None for a pointer
    scope: str = ""  # pointer it applies to, with everything below; empty for the whole file
    fix: Fix | None = None  # fix that removes it

    @property
    def place(self) -> str | int:
        """Line it applies to, or else the pointer."""
        return self.scope if self.line is None else self.line


def suppress(
    findings: Iterable[Diagnostic], tree: Tree, find: FindRule, *, kept: Callable[[str], bool], require_reason: bool
) -> tuple[list[Diagnostic], int]:
    """Return the findings that are not ignored, with findings about the ignores, and the number of hidden ones.

    `kept` returns True for rules that are disabled or whose findings cannot be ignored.
    """
    text = tree.text
    if KEY not in text and _SPACED_MARK.search(text) is None:
        return list(findings), 0
    ignores, wrong = read_ignores(tree, find, require_reason=require_reason)
    # By rule and place: a document may have as many ignores as findings.
    spoken = {(ignore.rule, ignore.place) for ignore in ignores}
    ruled = {rule for rule, _ in spoken}
    used: set[tuple[str, str | int]] = set()
    shown: list[Diagnostic] = []
    hidden = 0
    for finding in findings:
        speaking = [one for one in _places_of(finding) if one in spoken] if finding.rule in ruled else []
        used.update(speaking)
        if speaking and not kept(finding.rule):
            hidden += 1
        else:
            shown.append(finding)
    for one in ignores:
        if (one.rule, one.place) not in used and not kept(one.rule):
            message = f"the ignore of {one.rule} hides nothing"
            shown.append(UNUSED.found(message, one.location, one.scope, "Remove it.", one.fix))
    return shown + wrong, hidden


def _places_of(finding: Diagnostic) -> Iterator[tuple[str, str | int]]:
    """Yield the places where a finding can be ignored: its line, its pointer, and every parent pointer."""
    if finding.location is not None:
        yield finding.rule, finding.location.line
    at = finding.pointer
    yield finding.rule, at
    while at:
        at = parent(at)
        yield finding.rule, at


def read_ignores(tree: Tree, find: FindRule, *, require_reason: bool) -> tuple[list[Ignore], list[Diagnostic]]:
    """Read the ignores of a document, and report invalid ones."""
    ignores: list[Ignore] = []
    wrong: list[Diagnostic] = []
    reader = _IgnoreReader(tree, find, require_reason, ignores, wrong)
    if KEY in tree.text:
        for at, value in nodes(tree.data):
            if isinstance(value, dict) and KEY in value:
                reader.read_key(at, value[KEY])
    if tree.notation != "json":
        for match in _comments(tree):
            reader.read_comment(match)
    return ignores, wrong


@dataclass(slots=True)
class _IgnoreReader:
    tree: Tree
    find: FindRule
    require_reason: bool
    ignores: list[Ignore]
    wrong: list[Diagnostic]
    content: list[int] | None = None  # lines with more than a comment, computed on demand

    def read_comment(self, match: re.Match[str]) -> None:
        place = self.tree.location(Span(match.start(), match.start() + len(match[0].rstrip())))
        named = match["rules"]
        if named is None or not named.strip():
            message = "the ignore does not name a rule"
            self._report(UNKNOWN, message, place, "Name the rules to ignore: `bespeak: ignore[P302] reason`.")
            return
        line = None if match["what"] == "ignore-file" else self._line_meant(place.line)
        scope = self.tree.scope_of(line) if line is not None else None
        names = named.split(",")
        at = match.start("rules")
        for number, name in enumerate(names):
            end = at + len(name)
            if len(names) == 1:
                edit = _without_comment(self.tree.text, match)
            else:
                edit = deletion(at, end + 1) if number == 0 else deletion(at - 1, end)
            fix = Fix(f"Remove the ignore of {name.strip()[:40]}", (), edits=(edit,))
            self._add(name, match["reason"].strip(" \t:-"), place, fix, line=None if scope else line, scope=scope or "")
            at = end + 1

    def _line_meant(self, line: int) -> int:
        """Return the line a comment applies to: its own, or the next one with content if the comment is alone."""
        if self.content is None:
            lines = enumerate(_LINE.finditer(self.tree.text), 1)
            self.content = [number for number, found in lines if found["content"] not in ("", "#")]
        following = bisect_left(self.content, line)
        return self.content[following] if following < len(self.content) else line

    def read_key(self, at: str, value: Any) -> None:
        key = child(at, KEY)
        if isinstance(value, dict):
            named = {str(name): reason if isinstance(reason, str) else "" for name, reason in value.items()}
        elif isinstance(value, list):
            named = {str(name): "" for name in value}
        else:
            message = f"`{KEY}` is {brief(value)}, not rules with their reasons"
            self._report(UNKNOWN, message, self.tree.locate(key), f'Write "{KEY}": {{"P302": "the reason"}}.', key)
            return
        for number, (name, reason) in enumerate(named.items()):
            item = child(key, name if isinstance(value, dict) else number)
            fix = Fix(f"Remove the ignore of {name[:40]}", (Change("remove", key if len(named) == 1 else item),))
            self._add(name, reason.strip(), self.tree.locate(item, key=True), fix, scope=at)

    def _add(self, name: str, reason: str, place: Location, fix: Fix, *, line: int | None = None, scope: str) -> None:
        rule = self.find(name)
        if rule is None:
            self._report(UNKNOWN, f"there is no rule {brief(name.strip())}", place, "See `bespeak explain`.", scope)
            return
        if self.require_reason and not reason:
            advice = f"Write why {rule.id} does not apply here."
            self._report(UNREASONED, f"the ignore of {rule.id} gives no reason", place, advice, scope)
        self.ignores.append(Ignore(rule.id, place, line, scope, fix))

    def _report(self, rule: Rule, message: str, place: Location, advice: str, at: str = "") -> None:
        self.wrong.append(rule.found(message, place, at, advice))


def _comments(tree: Tree) -> Iterator[re.Match[str]]:
    """Yield the comments that are ignores, but not text inside a value."""
    found = list(_COMMENT.finditer(tree.text))
    if not found:
        return
    values = sorted(_string_spans(tree))
    starts = [start for start, _ in values]
    for match in found:
        at = match.start()
        nearest = bisect_right(starts, at) - 1
        start, end = values[nearest] if nearest >= 0 else (at, at)
        # A comment may follow the `|` or `>` that begins a block scalar in YAML.
        if end <= at or (tree.text[start] in "|>" and tree.text.find("\n", start, at) < 0):
            yield match


def _string_spans(tree: Tree) -> Iterator[tuple[int, int]]:
    for at, value in nodes(tree.data):
        spans = [tree.key_span(child(at, str(key))) for key in value] if isinstance(value, dict) else []
        if isinstance(value, str):
            spans.append(tree.value_span(at))
        yield from ((span.start, span.end) for span in spans if span is not None)


def _without_comment(text: str, comment: re.Match[str]) -> TextEdit:
    """Build the edit that removes a comment, and its line if nothing else is on it, or the spaces before."""
    start = text.rfind("\n", 0, comment.start()) + 1
    if before := text[start : comment.start()].rstrip(" \t"):
        return deletion(start + len(before), comment.end())
    return deletion(start, min(comment.end() + 1, len(text)))
