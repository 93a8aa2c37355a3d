"""Changes of a document as edits of its text, in every notation, so that comments and order survive."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import yaml

from bespeak.text.source.brace_tree import BraceTree
from bespeak.text.source.json_tree import JsonTree
from bespeak.text.source.pointer import parent, unescaped
from bespeak.text.source.toml_tree import TomlTree
from bespeak.text.source.tree import Change, Place, Span, TextEdit, Tree, deletion, insertion, match_end
from bespeak.text.source.value_text import LONGEST_KEY, expressible, toml_key, toml_value, yaml_key, yaml_value
from bespeak.text.source.yaml_tree import YamlTree, node_span

_GAP: Final = re.compile(r"(?:\s|#[^\n]*+)*+")


def add_last(text: str, around: Span, entries: list[Span], written: str) -> tuple[TextEdit, ...]:
    """Insert an entry after the last one, on its own line if the last one has one."""
    if not entries:
        inside = text[around.start + 1 : around.end - 1]
        if "#" in inside:
            return (insertion(around.start + 1, f"{written} "),)
        blank = " " if inside[:1] == " " and "\n" not in inside else ""
        return (TextEdit(Span(around.start + 1, around.end - 1), f"{blank}{written}{blank}"),)
    last = entries[-1]
    line = text.rfind("\n", around.start, last.start)
    before = text[line + 1 : last.start]
    blank = " " if text[last.end - 1] == ":" else ""  # YAML's key without a value
    if line >= 0 and not before.strip():
        return (insertion(last.end, f"{blank},\n{before}{written}"),)
    return (insertion(last.end, f"{blank}, {written}"),)


def take_out(text: str, around: Span, entries: list[Span], index: int) -> tuple[TextEdit, ...]:
    """Remove one entry with its comma; comments on their own lines stay."""
    entry = entries[index]
    if len(entries) == 1:
        if "#" not in text[around.start + 1 : around.end - 1]:
            return (deletion(around.start + 1, around.end - 1),)
        comma = gap_end(text, entry.end)
        rest = (deletion(comma, comma + 1),) if text.startswith(",", comma) else ()
        return (deletion(entry.start, entry.end), *rest)
    if index < len(entries) - 1:
        following = entries[index + 1]
        if "#" not in text[entry.end : following.start]:
            return (deletion(entry.start, following.start),)
        comma = gap_end(text, entry.end)
        return (deletion(entry.start, entry.end), deletion(comma, comma + 1))
    previous = entries[index - 1]
    if "#" not in text[previous.end : entry.start]:
        return (deletion(previous.end, entry.end),)
    comma = gap_end(text, previous.end)
    return (deletion(comma, comma + 1), deletion(entry.start, entry.end))


def gap_end(text: str, at: int) -> int:
    """Return the next character outside of spaces and comments."""
    return match_end(_GAP, text, at)


def line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def whole_lines(text: str, start: int, end: int) -> TextEdit:
    """Remove the lines of a span but keep the text after it on its last line."""
    return deletion(line_start(text, start), min(line_end(text, end) + 1, len(text)))


_HEADER_END: Final = re.compile(r"[ \t]*+\]")
Edits = tuple[TextEdit, ...] | None


class _ValueWriter(NamedTuple):
    """How a notation writes values and keys; None for what it cannot express."""

    value: Callable[[Any, str], str | None]  # takes the first character of the old value, a quote to keep
    key: Callable[[str], str | None]
    assign: str


def _json_text(value: Any, _quote: str = "") -> str | None:
    return expressible(lambda: json.dumps(value, ensure_ascii=False, allow_nan=False))


_JSON: Final = _ValueWriter(_json_text, _json_text, ": ")
_TOML: Final = _ValueWriter(lambda value, quote: toml_value(value, literal=quote == "'"), toml_key, " = ")


def placed_edits(tree: JsonTree | TomlTree, change: Change) -> Edits:
    """Return the edits, or None if the place does not exist, is spread over several headers, or cannot be written."""
    write = _JSON if isinstance(tree, JsonTree) else _TOML
    if (place := tree.place(change.at)) is None:
        return None
    if change.op in {"append", "insert"}:
        return _added(tree.text, change, place, write)
    if place.end < 0:
        return None
    if change.op == "replace":
        written = write.value(change.value, tree.text[place.start : place.start + 1])
        return None if written is None else (TextEdit(place.span, written),)
    around = tree.place(parent(change.at)) if change.at else None
    if around is None:
        return None
    if change.op == "rename":
        name = write.key(change.key)
        if place.key is None or name is None or change.key in (around.entries or {}):
            return None
        return (TextEdit(place.key, name),)
    return _removed(tree.text, change.at, place.entry_span, around)


def _removed(text: str, at: str, entry: Span, around: Place) -> Edits:
    before = text[line_start(text, entry.start) : entry.start]
    in_brackets = around.end >= 0 and text[around.start : around.start + 1] in {"[", "{"}
    if in_brackets and around.start < entry.start < around.end:
        neighbours, index = _beside(around, at)
        if any(span.end < 0 for span in neighbours) or before.rstrip(" \t").endswith("."):
            return None  # a dotted key is not one place
        return take_out(text, around.span, neighbours, index)
    if before.strip():
        return None  # a dotted key: without it, its table would be gone as well
    return (whole_lines(text, entry.start, entry.end),)


def _beside(around: Place, at: str) -> tuple[list[Span], int]:
    """Return a pointer's entry with its neighbours and its index among them: all of a list may be many."""
    part = at.rpartition("/")[2]
    index = int(part) if around.entries is None else list(around.entries).index(unescaped(part))
    first = max(0, index - 1)
    return [entry.entry_span for entry in around.children[first : index + 2]], index - first


def _added(text: str, change: Change, place: Place, write: _ValueWriter) -> Edits:
    if (written := write.value(change.value, "")) is None:
        return None
    if change.op == "insert":
        name = write.key(change.key)
        if place.entries is None or name is None or change.key in place.entries:
            return None
        written = f"{name}{write.assign}{written}"
        if place.end < 0:
            return _below_header(text, change.at, place, place.entries, written)
    elif place.items is None or place.end < 0:
        return None
    entries = [entry.entry_span for entry in place.children]
    if any(span.end < 0 for span in entries):
        return None  # dotted keys: the last entry is not one place
    return add_last(text, place.span, entries, written)


def _below_header(text: str, at: str, table: Place, entries: dict[str, Place], written: str) -> Edits:
    """Add a line to a TOML table with a header: after its last value, or else after the header."""
    last = max((entry for entry in entries.values() if entry.end >= 0), key=lambda entry: entry.end, default=None)
    if last is not None:
        start = last.entry_span.start
        before = text[line_start(text, start) : start]
        return None if before.strip() else (insertion(line_end(text, last.end), f"\n{before}{written}"),)
    if not at:
        return (insertion(0, f"{written}\n"),)
    if table.key is None or not _HEADER_END.match(text, table.key.end):
        return None  # a table that only the headers of its parts name
    line = text[line_start(text, table.key.start) :]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return (insertion(line_end(text, table.key.end), f"\n{indent}{written}"),)


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_HEAD: Final = {"method": re.compile(r"[A-Za-z][\w-]*+"), "path": re.compile(r"/[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+")}


def brace_edits(tree: BraceTree, change: Change) -> tuple[TextEdit, ...] | None:
    """Return the edit that replaces one scalar value, or None."""
    place = tree.place(change.at)
    if change.op != "replace" or place is None or not change.at:
        return None
    if place.entries is not None or place.items is not None or isinstance(change.value, list | dict):
        return None
    if place.key is None and (head := _HEAD.get(change.at.rpartition("/")[2])) is not None:
        fits = isinstance(change.value, str) and head.fullmatch(change.value)
        return (TextEdit(place.span, change.value),) if fits else None
    around = tree.place(parent(change.at))
    if around is not None and around.items is not None and tree.text[around.start] not in "[-":
        fits = place.key is None and isinstance(change.value, str) and _NAME.fullmatch(change.value)
        return (TextEdit(place.span, change.value),) if fits else None  # names are never quoted
    style = tree.text[place.start : place.start + 1]
    written = yaml_value(change.value, style=style if style in {'"', "'"} else "", flow=True)
    if written is None:
        return None
    blank = " " if place.start == place.end else ""
    return (TextEdit(place.span, blank + written),)


_PROPERTIES: Final = ("&", "!")  # first characters of anchors and tags: such a node is more than its value
_AMBIGUOUS: Final = re.compile("[\r\x85\u2028\u2029\ufeff]|^ *+\t|[|>][1-9]?\\+", re.MULTILINE)
"""Characters that make lines and columns unreliable: YAML-only line ends, byte order marks inside the text, leading
tabs, and block text that keeps its trailing blank lines.
"""


def yaml_edits(tree: YamlTree, change: Change) -> Edits:
    """Return the edits, or None if the place does not exist or aliases would carry the change elsewhere."""
    found = tree.entry(change.at)
    if found is None or tree.has_aliases or _is_ambiguous(tree.text):
        return None
    key, node = found
    if any(tree.text.startswith(_PROPERTIES, part.start_mark.index) for part in (key, node) if part is not None):
        return None
    above = _collections_above(tree, change.at)
    flow = any(around.flow_style for around in above)
    if change.op == "replace":
        return _replaced(tree, change, key, node, flow=flow)
    if change.op == "rename":
        return _renamed(tree, change, key, flow=flow)
    if change.op == "remove":
        return _removed_from_yaml(tree, change, key, above[-1]) if above else None
    return _added_to_yaml(tree, change, node, flow=flow)


@lru_cache(maxsize=1)
def _is_ambiguous(text: str) -> bool:
    """Check the whole text; cached, because it is called for each change of a document."""
    return _AMBIGUOUS.search(text) is not None


def _collections_above(tree: YamlTree, at: str) -> list[yaml.CollectionNode]:
    above: list[yaml.CollectionNode] = []
    while at:
        at = parent(at)
        found = tree.entry(at)
        if found is not None and isinstance(found[1], yaml.CollectionNode):
            above.insert(0, found[1])
    return above


def _replaced(tree: YamlTree, change: Change, key: yaml.Node | None, node: yaml.Node, *, flow: bool) -> Edits:
    text, span = tree.text, node_span(tree.text, node)
    if (written := yaml_value(change.value, style=_style(node), flow=flow)) is None:
        return None
    if span.start < span.end and text[span.end : span.end + 1].strip(" \t\n,]}"):
        return None  # `{}#`: another value would swallow what follows
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        if "#" in text[span.start : span.end]:
            return None  # there may be comments between the old values
        return _in_place_of(tree, change.at, span, written)
    if span.start == span.end:
        if key is not None and not text.startswith(":", gap_end(text, key.end_mark.index)):
            start, end = key.start_mark, key.end_mark
            takes_colon = flow and start.line == end.line and end.index - start.index <= LONGEST_KEY
            return (insertion(end.index, f": {written}"),) if takes_colon else None
        return (insertion(span.start, f" {written}"),) if change.at else None
    if _style(node) in {"|", ">"} and not text[line_start(text, span.start) : span.start].strip():
        return None  # a block text may start further left than other values
    blank = " " if text[span.start - 1 : span.start] == ":" else ""
    return (TextEdit(span, blank + written),)


def _in_place_of(tree: YamlTree, at: str, span: Span, written: str) -> Edits:
    """Replace a block value by a flow value after its key: a list may be indented no further than its key."""
    found = tree.entry(at)
    key = found[0] if found else None
    if key is None:
        return (TextEdit(span, written),)
    between = tree.text[key.end_mark.index : span.start]
    if between.strip() != ":":
        return None
    colon = key.end_mark.index + between.index(":") + 1
    return (TextEdit(Span(colon, span.end), f" {written}"),)


def _renamed(tree: YamlTree, change: Change, key: yaml.Node | None, *, flow: bool) -> Edits:
    found = tree.entry(parent(change.at))
    if key is None or found is None:
        return None
    if any(other.value == change.key for other, _ in found[1].value):
        return None
    written = yaml_key(change.key, style=_style(key), flow=flow)
    return None if written is None else (TextEdit(node_span(tree.text, key), written),)


def _removed_from_yaml(tree: YamlTree, change: Change, key: yaml.Node | None, around: yaml.CollectionNode) -> Edits:
    text = tree.text
    if text.startswith(_PROPERTIES, around.start_mark.index):
        return None
    entries = _entry_spans(text, around)
    names = [pair[0].value for pair in around.value] if key is not None else []
    index = names.index(key.value) if key is not None else int(change.at.rpartition("/")[2])
    if around.flow_style:
        if not _is_plain_flow(text, around):
            return None
        return take_out(text, node_span(text, around), entries, index)
    if len(entries) == 1:
        span = node_span(text, around)
        if text.startswith("?", span.start):
            return None
        return _in_place_of(tree, parent(change.at), span, "{}" if key is not None else "[]")
    return _lines_removed(text, entries[index], first=index == 0)


def _lines_removed(text: str, entry: Span, *, first: bool) -> Edits:
    before = text[line_start(text, entry.start) : entry.start]
    if not before.strip():
        return (whole_lines(text, entry.start, entry.end),)
    if not first or before.strip(" -"):
        return None
    # The first entry shares its line with the dash of the item around it: the next one moves there.
    end = line_end(text, entry.end)
    return (deletion(entry.start, end + len(text[end:]) - len(text[end:].lstrip())),)


def _added_to_yaml(tree: YamlTree, change: Change, node: yaml.Node, *, flow: bool) -> Edits:
    text = tree.text
    flow = flow or bool(getattr(node, "flow_style", False))
    if (written := yaml_value(change.value, flow=flow)) is None:
        return None
    if change.op == "insert":
        name = yaml_key(change.key, flow=flow)
        if not isinstance(node, yaml.MappingNode) or name is None:
            return None
        if any(key.value == change.key for key, _ in node.value):
            return None
        written = f"{name}: {written}"
    elif not isinstance(node, yaml.SequenceNode):
        return None
    span = node_span(text, node)
    if flow:
        return add_last(text, span, _entry_spans(text, node), written) if text[span.start] in "[{" else None
    column = node.start_mark.index - line_start(text, node.start_mark.index)
    dash = "- " if change.op == "append" else ""
    end = line_end(text, span.end)
    if end == len(text) and _ends_in_block_text(node):
        return None  # the text would get the line feed that it does not have
    return (insertion(end, f"\n{' ' * column}{dash}{written}"),)


def _ends_in_block_text(node: yaml.Node) -> bool:
    while isinstance(node, yaml.CollectionNode) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}


def _style(node: yaml.Node) -> str:
    return node.style or "" if isinstance(node, yaml.ScalarNode) else ""


@lru_cache(maxsize=1)
def _is_plain_flow(text: str, around: yaml.CollectionNode) -> bool:
    """Return True if no entry is written as `? key : value` or as a pair without braces inside a list."""
    entries = _entry_spans(text, around)
    gaps = [text[around.start_mark.index : entries[0].start]]
    gaps += [text[one.end : other.start] for one, other in pairwise(entries)]
    return bool(gaps[0]) and not any("?" in gap for gap in gaps)


@lru_cache(maxsize=1)
def _entry_spans(text: str, node: yaml.CollectionNode) -> list[Span]:
    """Return the span of each key with its value, or of each item including its dash; cached for long lists."""
    spans: list[Span] = []
    here = node.start_mark.index
    for entry in node.value:
        if isinstance(entry, tuple):
            key, value = entry
            here = max(key.end_mark.index, node_span(text, value).end)
            spans.append(Span(key.start_mark.index, here))
            continue
        span = node_span(text, entry)
        start = span.start if node.flow_style else gap_end(text, here)
        here = max(span.end, start + 1)
        spans.append(Span(start, here))
    return spans


def edits(tree: Tree, change: Change) -> tuple[TextEdit, ...] | None:
    if tree.is_made(change.at):
        return None
    if isinstance(tree, YamlTree):
        return yaml_edits(tree, change)
    if isinstance(tree, JsonTree | TomlTree):
        return placed_edits(tree, change)
    return brace_edits(tree, change) if isinstance(tree, BraceTree) else None
