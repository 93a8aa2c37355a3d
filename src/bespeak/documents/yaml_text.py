"""Plain data as readable YAML, with its comments: blocks, short lists on one line, folded long sentences."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from bespeak.documents.rules import UNKNOWN_DOCUMENT
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.source.brace_tree import parse_braces
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.pointer import ABSENT, child, parent, value_at
from bespeak.text.source.toml_tree import parse_toml
from bespeak.text.source.tree import Location, Notation, Span, SyntaxFault, Tree, detect_notation
from bespeak.text.source.value_text import is_clean, number_scalar, text_scalar
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

WIDTH: Final = 100  # maximum length of a line that can be folded without a change of meaning

_STEP: Final = "  "
_LONGEST_KEY: Final = 120  # of a plain key: readers search about a thousand characters for its colon


@dataclass(frozen=True, slots=True)
class Comments:
    """Comments by the pointer of their entry, each with its `#`."""

    at_top: tuple[str, ...] = ()  # comments before everything else; an empty text is an empty line
    above: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    at_end: tuple[str, ...] = ()

    def places(self) -> set[str]:
        """Return every ancestor of an entry with a comment: it cannot be written on one line."""
        found: set[str] = set()
        for at in (*self.above, *self.beside):
            place = parent(at) if at else at
            while place not in found:
                found.add(place)
                place = parent(place)
        return found


def yaml_text(data: Any, comments: Comments | None = None, spaced: frozenset[str] = frozenset()) -> str:
    """Write a YAML document, with an empty line before each top-level block and between the items of `spaced` lists."""
    writer = _YamlWriter(comments or Comments(), spaced)
    if isinstance(data, Mapping) and data:
        writer.mapping(data, "", "")
    elif isinstance(data, list) and data:
        writer.sequence(data, "", "")
    else:
        writer.lines.append("{}" if isinstance(data, Mapping) else _on_one_line(data))
    writer.lines.extend(writer.comments.at_end)
    return "\n".join(writer.lines) + "\n"


class _YamlWriter:
    def __init__(self, comments: Comments, spaced: frozenset[str]) -> None:
        self.lines: list[str] = list(comments.at_top)
        self.comments = comments
        self._commented = comments.places()
        self._spaced = spaced

    def mapping(self, data: Mapping[str, Any], at: str, indent: str, lead: str | None = None) -> None:
        """Write a block of keys. `lead` holds the dash if the block is an item of a list."""
        for key, value in data.items():
            place = child(at, key)
            if not at and len(self.lines) > len(self.comments.at_top) and _is_block(value):
                self.lines.append("")
            start = indent if lead is None else lead
            lead = None
            self._above(place, indent)
            written = text_scalar(key)
            if len(written) > _LONGEST_KEY:
                self.lines.append(f"{start}? {written}")
                start, written = indent, ""
            self._value(value, place, indent, f"{start}{written}:")

    def sequence(self, data: list[Any], at: str, indent: str, lead: str | None = None) -> None:
        for index, value in enumerate(data):
            place = f"{at}/{index}"
            if index and at in self._spaced:
                self.lines.append("")
            start = indent if lead is None else lead
            lead = None
            self._above(place, indent)
            if not isinstance(value, dict | list) or not value or self._fits(value, place, indent + "- "):
                self._value(value, place, indent, f"{start}-")
            elif self._has_comment_first(value, place) or place in self.comments.beside:
                self.lines.append(start + "-" + self._beside(place))
                self._block(value, place, indent + _STEP)
            else:
                self._block(value, place, indent + _STEP, start + "- ")

    def _block(self, value: dict[str, Any] | list[Any], at: str, indent: str, lead: str | None = None) -> None:
        if isinstance(value, dict):
            self.mapping(value, at, indent, lead)
        else:
            self.sequence(value, at, indent, lead)

    def _value(self, value: Any, at: str, indent: str, start: str) -> None:
        """Write the value after a colon or a dash: on the same line, or as a block below it."""
        if isinstance(value, str):
            self._text(value, at, indent, start)
        elif isinstance(value, dict | list) and value and not self._fits(value, at, start + " "):
            self.lines.append(start + self._beside(at))
            self._block(value, at, indent + _STEP)
        else:
            self.lines.append(f"{start} {_on_one_line(value)}{self._beside(at)}")

    def _text(self, text: str, at: str, indent: str, start: str) -> None:
        inner = indent + _STEP
        beside = self._beside(at)
        if _is_literal(text):
            header = "|" if text.endswith("\n") else "|-"
            self.lines.append(f"{start} {header}{beside}")
            self.lines.extend(f"{inner}{line}" if line else "" for line in text.removesuffix("\n").split("\n"))
            return
        written = text_scalar(text)
        # A text can be folded at its spaces if all are single: readers turn breaks into spaces again.
        can_fold = " " in text and is_clean(text) and text.strip(" ") == text and "  " not in text
        if len(start) + 1 + len(written) > WIDTH and can_fold:
            width = max(WIDTH - len(inner), 20)
            folded = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
            self.lines += [f"{start} >-{beside}", *(inner + line for line in folded)]
            return
        self.lines.append(f"{start} {written}{beside}")

    def _fits(self, value: dict[str, Any] | list[Any], at: str, start: str) -> bool:
        """Return True if a collection fits on the line it starts on. Only lists of scalars do."""
        if isinstance(value, dict) or at in self._commented or len(value) > WIDTH:
            return False
        is_flat = not any(isinstance(item, dict | list) for item in value)
        return is_flat and len(start) + len(_on_one_line(value)) <= WIDTH

    def _has_comment_first(self, value: dict[str, Any] | list[Any], at: str) -> bool:
        """Return True if a comment precedes the first entry; the dash is then written on a line of its own."""
        return child(at, next(iter(value)) if isinstance(value, dict) else 0) in self.comments.above

    def _above(self, at: str, indent: str) -> None:
        self.lines.extend(indent + comment for comment in self.comments.above.get(at, ()))

    def _beside(self, at: str) -> str:
        comment = self.comments.beside.get(at)
        return f" {comment}" if comment else ""


def _is_block(value: Any) -> bool:
    parts = [value] if isinstance(value, dict) and value else value if isinstance(value, list) else ()
    return any(isinstance(part, dict) for part in parts)


def _on_one_line(value: Any) -> str:
    if isinstance(value, str):
        return text_scalar(value, in_list=True)
    if isinstance(value, list):
        return f"[{', '.join(map(_on_one_line, value))}]"
    if isinstance(value, dict):
        return "{}"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else number_scalar(value)


def _is_literal(text: str) -> bool:
    """Return True if a text of several lines can be a literal block, without loss at the ends of lines."""
    if "\n" not in text or text[0] in " \n" or text.endswith("\n\n"):
        return False
    return all(is_clean(line) and not line.endswith(" ") for line in text.split("\n"))


_COMMENT: Final = re.compile(r"(?<![^ \t\n])#[^\n]*")
_VISIBLE: Final = re.compile(r"[^\n]")
_BLOCK_STYLES: Final = frozenset("|>")


def comment_texts(tree: YamlTree) -> list[str]:
    return [match[0].rstrip() for match in _COMMENT.finditer(_without_scalars(tree))]


def first_comment(tree: YamlTree) -> Span | None:
    match = _COMMENT.search(_without_scalars(tree))
    return Span(*match.span()) if match else None


def read_comments(tree: YamlTree, data: Any, moved: Callable[[str], str] = lambda at: at) -> Comments:
    """Return the comments of a text by the pointers of the data to write.

    A comment on its own line belongs to the next entry, a comment at the end of a line to the entry on that line.
    `moved` maps old pointers to new ones; if an entry no longer exists, its comment is put above the parent.
    """
    if not _COMMENT.search(tree.text):
        return Comments()
    masked = _without_scalars(tree)
    entries = sorted(_entries(tree.root, "", masked)) if tree.root is not None else []
    starts = [start for start, _ in entries]
    at_top: list[str] = []
    above: dict[str, list[str]] = {}
    beside: dict[str, str] = {}
    at_end: list[str] = []
    for match in _COMMENT.finditer(masked):
        text = match[0].rstrip()
        following = bisect_left(starts, match.start())
        line_start = masked.rfind("\n", 0, match.start()) + 1
        alone = not masked[line_start : match.start()].strip() or not following
        if not alone:
            at = _present(moved(entries[following - 1][1]), data)
            if at not in beside and at and at == moved(entries[following - 1][1]):
                beside[at] = text
                continue
        if not following:
            at_top += ["", text] if at_top and masked[:line_start].endswith("\n\n") else [text]
        elif following == len(entries):
            at_end.append(text)
        else:
            above.setdefault(_present(moved(entries[following][1]), data), []).append(text)
    if at_top and starts and "\n\n" in masked[: starts[0]].rpartition("#")[2]:
        at_top.append("")
    return Comments(tuple(at_top), {at: tuple(texts) for at, texts in above.items()}, beside, tuple(at_end))


def _present(at: str, data: Any) -> str:
    """Return the pointer if it exists, else its nearest existing ancestor; for the root, the first key."""
    while at and value_at(data, at, ABSENT) is ABSENT:
        at = parent(at)
    return at or (child("", next(iter(data))) if isinstance(data, dict) and data else "")


def _without_scalars(tree: YamlTree) -> str:
    """Mask each character of keys and values, so that every remaining `#` starts a comment."""
    if not _COMMENT.search(tree.text):
        return tree.text
    pieces: list[str] = []
    done = 0
    for start, end in sorted(_scalars(tree)):
        if start >= done:
            pieces += (tree.text[done:start], _VISIBLE.sub("x", tree.text[start:end]))
            done = end
    return "".join(pieces) + tree.text[done:]


def _scalars(tree: YamlTree) -> Iterator[tuple[int, int]]:
    for node in _nodes(tree.root):
        if not isinstance(node, yaml.ScalarNode):
            continue
        start, end = node.start_mark.index, node.end_mark.index
        if node.style in _BLOCK_STYLES:  # a comment may follow the indicator of a block scalar
            line_end = tree.text.find("\n", start, end)
            start = line_end if line_end >= 0 else end
        yield start, end


def _nodes(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """Yield every node once, even if several aliases lead to it."""
    seen: set[int] = set()
    waiting = [root] if root is not None else []
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting.extend(part for entry in node.value for part in entry)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)


def _entries(node: yaml.Node, at: str, masked: str, seen: set[int] | None = None) -> Iterator[tuple[int, str]]:
    """Yield the start of each key and each item; a block item starts at its dash."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = child(at, key.value)
            yield key.start_mark.index, place
            yield from _entries(value, place, masked, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            place = child(at, index)
            start = value.start_mark.index
            if id(value) not in seen:
                yield start if node.flow_style else _dash(masked, start), place
            yield from _entries(value, place, masked, seen)


def _dash(masked: str, start: int) -> int:
    """Return the position of an item's dash: on its line, or on an earlier one with only comments between."""
    while True:
        line_start = masked.rfind("\n", 0, start) + 1
        line = _COMMENT.sub("", masked[line_start:start])
        found = line.rfind("-")
        if found >= 0:
            return line_start + found
        if line.strip() or not line_start:
            return start
        start = line_start - 1


NAMES: Final[dict[Notation, str]] = {"yaml": "YAML", "json": "JSON", "toml": "TOML", "braces": "AGIS's brace notation"}

_PARSERS: Final[dict[Notation, Callable[[str, str], Tree | SyntaxFault]]] = {
    "yaml": parse_yaml,
    "json": parse_json,
    "toml": parse_toml,
    "braces": parse_braces,
}


def parse_notation(text: str, file: str) -> Tree | Diagnostic:
    """Parse a text into a tree, or return a diagnostic. TOML is recognised by its file name, others by content."""
    if file.endswith(".py"):
        advice = "`bespeak lint` takes the file or module:app and imports it; a text from elsewhere is not run."
        return UNKNOWN_DOCUMENT.found("this is Python, not a document", Location(file), advice=advice)
    notation: Notation = "toml" if file.endswith(".toml") else detect_notation(text)
    if notation == "braces":
        # A text block of YAML may look like braces; brace notation is never a mapping of YAML.
        plain = parse_yaml(text, file)
        if not isinstance(plain, SyntaxFault) and isinstance(plain.data, dict):
            return plain
    tree = _PARSERS[notation](text, file)
    if isinstance(tree, SyntaxFault):
        return MALFORMED.found(f"this is not {NAMES[notation]}: {tree.message}", tree.location, advice=tree.help)
    return tree
