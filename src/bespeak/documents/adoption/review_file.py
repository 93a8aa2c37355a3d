"""A file of an import under review: its guesses, and the changes that a review makes to its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tomli

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.adoption.facade import DANGERS, MARKER, UNREVIEWED, danger_of, is_weighty
from bespeak.documents.deployment.deployment import Deployment
from bespeak.documents.deployment.folder import CONFIGURATIONS
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.edit import line_end, line_start, placed_edits, whole_lines
from bespeak.text.source.pointer import child, value_at
from bespeak.text.source.toml_tree import TomlTree, parse_toml, toml_comments
from bespeak.text.source.tree import Change, Place, Span, SyntaxFault, TextEdit, apply_edits, deletion

SETTINGS: Final = "SETTINGS"  # word in place of a method for the guesses of the configuration
_REVIEWED: Final = "/endpoint/reviewed"


@dataclass(frozen=True, slots=True)
class Note:
    """A guess that waits for a review, from its comment."""

    at: str  # pointer of the entry below the comment; empty if there is none
    confidence: float
    text: str
    span: Span  # place of the comment


@dataclass(frozen=True, slots=True)
class ReviewFile:
    path: Path
    tree: TomlTree
    endpoint: Endpoint | None  # endpoint of the file; None for the configuration
    notes: tuple[Note, ...]  # guesses, those that decide what a call does first

    @property
    def name(self) -> str:
        """Method and path, or the name of the configuration."""
        return f"{SETTINGS} {self.path.name}" if self.endpoint is None else str(self.endpoint)

    @property
    def danger(self) -> str:
        if self.endpoint is None:
            return ""
        return danger_of(self.endpoint, [(_inside(note.at), note.confidence) for note in self.notes])

    def written(self, at: str) -> str:
        """Return the value at a pointer as it is written; empty for a table with a header."""
        place = self.tree.place(at)
        return "" if place is None or place.end < 0 else self.tree.text[place.start : place.end]

    def accepted(self) -> str | None:
        """Return the text without its guesses and `reviewed = false`; None if that line cannot be removed alone."""
        tree = self.tree
        edits = []
        for span in toml_comments(tree.text):
            comment = tree.text[span.start : span.end]
            if MARKER.fullmatch(comment) or comment.lstrip("# \t").startswith(UNREVIEWED):
                edits.append(_without(tree.text, span))
        if value_at(tree.data, _REVIEWED, True) is False:
            removal = placed_edits(tree, Change("remove", _REVIEWED))
            if removal is None:
                return None
            edits += removal
        return self._restored(apply_edits(tree.text, edits))

    def changed(self, note: Note, typed: str) -> str:
        """Return the text with another value for a guess, without its comment. Raises ValueError with the reason."""
        if not self.written(note.at):
            raise ValueError("this guess has no value on one line; edit the file")
        value: Any = typed
        if not isinstance(value_at(self.tree.data, note.at), str) or typed[:1] in ('"', "'"):
            try:
                value = tomli.loads(f"value = {typed}")["value"]
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{typed[:80]!r} is not a valid TOML value: {error}") from None
        replacement = placed_edits(self.tree, Change("replace", note.at, value))
        if replacement is None:
            raise ValueError("this value cannot be replaced; edit the file")
        return self._restored(apply_edits(self.tree.text, [_without(self.tree.text, note.span), *replacement]))

    def _restored(self, text: str) -> str:
        return text.replace("\n", "\r\n") if self.tree.crlf else text


def read_review(path: Path, endpoint: Endpoint | None = None) -> ReviewFile | Diagnostic:
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return text
    tree = parse_toml(text, str(path))
    if isinstance(tree, SyntaxFault):
        return MALFORMED.found(f"this is not TOML: {tree.message}", tree.location)
    notes = sorted(_notes(tree), key=lambda note: (not is_weighty(_inside(note.at)), note.confidence))
    return ReviewFile(path, tree, endpoint, tuple(notes))


def waiting_files(deployment: Deployment) -> list[ReviewFile]:
    """Return the files of a deployment that wait for a review, the most dangerous endpoints first."""
    found = [(Path(one.location.file), one) for one in deployment.endpoints if one.location is not None]
    files = [read_review(path, endpoint) for path, endpoint in found]
    read = (file for file in files if isinstance(file, ReviewFile))
    waiting = [one for one in read if one.notes or (one.endpoint is not None and not one.endpoint.reviewed)]
    waiting.sort(key=_urgency)
    for name in CONFIGURATIONS:
        settings = read_review(deployment.root / name)
        if isinstance(settings, ReviewFile):
            return [*waiting, settings] if settings.notes else waiting
    return waiting


def _urgency(file: ReviewFile) -> tuple[int, bool, float]:
    is_final = file.endpoint is not None and file.endpoint.semantic.impact == "irreversible"
    least = min([1.0, *(note.confidence for note in file.notes)])
    return list(DANGERS).index(file.danger), not is_final, least


def _inside(at: str) -> str:
    return at.removeprefix("/endpoint")


def _notes(tree: TomlTree) -> Iterator[Note]:
    marked = ((span, MARKER.fullmatch(tree.text, span.start, span.end)) for span in toml_comments(tree.text))
    notes = [(span, found) for span, found in marked if found is not None]
    entries = _entries(tree) if notes else {}
    for span, found in notes:
        try:
            confidence = min(float(found[1]), 1.0)
        except ValueError:
            confidence = 0.0
        yield Note(_below(tree.text, span, entries), confidence, found[2], span)


def _entries(tree: TomlTree) -> dict[int, str]:
    """Return the pointers of all keys, by the start of their line; of several keys in one line, the outermost."""
    root = tree.place("")
    assert root is not None
    lines: dict[int, str] = {}

    def visit(place: Place, at: str) -> None:
        if place.key is not None:
            lines.setdefault(line_start(tree.text, place.key.start), at)
        parts = place.entries.items() if place.entries is not None else enumerate(place.items or ())
        for key, part in parts:
            if place.end < 0:
                visit(part, child(at, key))

    visit(root, "")
    return lines


def _below(text: str, comment: Span, entries: dict[int, str]) -> str:
    """Return the pointer of the entry that a comment precedes or follows on its line."""
    start = line_start(text, comment.start)
    while start < len(text):
        if start in entries:
            return entries[start]
        line = text[start : line_end(text, start)].strip()
        if line and not line.startswith("#"):
            return ""
        start = line_end(text, start) + 1
    return ""


def _without(text: str, comment: Span) -> TextEdit:
    before = text[line_start(text, comment.start) : comment.start]
    if before.strip():
        return deletion(comment.start - (len(before) - len(before.rstrip())), comment.end)
    return whole_lines(text, comment.start, comment.end)
