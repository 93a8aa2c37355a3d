"""Findings that are accepted: by ignores in a document, each with a reason, or by the baseline file of a project.

    path: /rooms/book          # bespeak: ignore[P302] a room called Book
    "x-bespeak-ignore": {"P302": "a room called Book"}

A comment applies to its line or, alone on a line, to the next one. The key applies to its mapping and everything
below; in the root, to the whole document. The fingerprints of a baseline are stable when lines move.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.diagnostics.report import Finding
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.table import IGNORES as KEY
from bespeak.text.source.pointer import child, nodes, parent, unescaped
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


NAME: Final = "bespeak-baseline.json"

STALE: Final = Rule("D193", "stale-baseline", "SHOULD", "bespeak")

_FORMAT: Final = 1
_MAX_BYTES: Final = 1 << 25

Entries = dict[str, dict[str, str]]  # By fingerprint: rule, file, pointer and message, for people who read the file.


class Baseline:
    def __init__(self, path: Path, entries: Entries) -> None:
        self.path = path
        self.entries = entries

    def split(
        self, findings: Iterable[Finding], kept: Callable[[str], bool] = lambda _: False
    ) -> tuple[list[Finding], set[str]]:
        """Return the new findings, and the fingerprints of the others. Findings of `kept` rules are always new."""
        new: list[Finding] = []
        known: set[str] = set()
        for finding in findings:
            if finding.fingerprint in self.entries and not kept(finding.diagnostic.rule):
                known.add(finding.fingerprint)
            else:
                new.append(finding)
        return new, known

    def stale(self, present: Collection[str], files: Collection[str], root: Path) -> list[Diagnostic]:
        """Report the entries without a finding in files that were checked or no longer exist."""
        return [
            STALE.found(
                f"the baseline lists {entry.get('rule')} in {entry.get('file')}, which no longer occurs",
                Location(str(self.path)),
                f"/findings/{fingerprint}",
                "Run `bespeak lint --write-baseline`.",
            )
            for fingerprint, entry in self.entries.items()
            if fingerprint not in present and _is_over(entry, files, root)
        ]

    def merged(self, findings: Iterable[tuple[Finding, str]], files: Collection[str], root: Path) -> Baseline:
        """Return the baseline with the findings of this run, each with its file, and the entries of other files."""
        entries = {name: entry for name, entry in self.entries.items() if not _is_over(entry, files, root)}
        for finding, file in findings:
            one = finding.diagnostic
            entry = {"rule": one.rule, "file": file, "pointer": one.pointer, "message": one.message}
            entries[finding.fingerprint] = entry
        return Baseline(self.path, entries)

    def write(self) -> None:
        """Write the file in a stable order, to keep its diffs small."""
        ordered = sorted(
            self.entries.items(),
            key=lambda pair: (pair[1].get("file", ""), pair[1].get("rule", ""), pair[1].get("pointer", ""), pair[0]),
        )
        text = json.dumps({"format": _FORMAT, "findings": dict(ordered)}, indent=2)
        try:
            self.path.write_text(f"{text}\n", "utf-8")
        except OSError as error:
            raise ConfigError(f"the baseline {self.path} cannot be written: {error.strerror or error}") from error


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file. Raises ConfigError if it is not valid."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        document: Any = decode_json(data) if len(data) <= _MAX_BYTES else None
    except OSError as error:
        raise ConfigError(f"the baseline {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the baseline {path} is not JSON. Recreate it with --write-baseline.") from error
    found = document.get("findings") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is not a baseline of this version. Recreate it with --write-baseline.")
    entries = {
        name: {key: str(value) for key, value in entry.items()} if isinstance(entry, dict) else {}
        for name, entry in found.items()
    }
    return Baseline(path, entries)


def _is_over(entry: dict[str, str], files: Collection[str], root: Path) -> bool:
    """Return True if this run has checked the file of an entry, or the file no longer exists."""
    file = entry.get("file", "")
    if file in files:
        return True
    if "://" in file:
        return False  # fetched by another run
    try:
        return not (root / file).exists()
    except (OSError, ValueError):
        return True


_PLACE: Final = re.compile(r":[0-9]+(?::[0-9]+)?")
_NAMES: Final = ("name", "id", "key", "verb", "from_method")  # keys whose value identifies an item of a list


def fingerprint(finding: Diagnostic, file: str, data: Any) -> str:
    """Compute the fingerprint of a finding from the path of its file, relative to the project, and the file's data."""
    from hashlib import sha256  # noqa: PLC0415 - brings OpenSSL, and many runs find nothing

    said = _PLACE.sub("", " ".join(finding.message.split()))
    parts = (finding.rule, file, stable_pointer(finding.pointer, data), said)
    return sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:20]


def stable_pointer(pointer: str, data: Any) -> str:
    """Replace the indexes in a pointer by the names of the items."""
    here = data
    parts: list[str] = []
    for part in pointer.split("/")[1:]:
        if isinstance(here, list):
            here = here[int(part)] if part.isdecimal() and len(part) < 10 and int(part) < len(here) else None
            parts.append(_identity(here) or part)
        else:
            here = here.get(unescaped(part)) if isinstance(here, dict) else None
            parts.append(part)
    return "/".join(("", *parts)) if parts else ""


def _identity(item: Any) -> str:
    if isinstance(item, str):
        return f"[{item[:200]}]"
    if not isinstance(item, dict):
        return ""
    method, path = item.get("method"), item.get("path")
    if isinstance(method, str) and isinstance(path, str):
        return f"[{method} {path}]"
    return next((f"[{item[key]}]" for key in _NAMES if isinstance(item.get(key), str)), "")
