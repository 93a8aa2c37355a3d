"""Changes of a document as edits of its text, in every notation, so that comments and order survive."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

import yaml

from bespeak.text.source.brace_tree import BraceTree
from bespeak.text.source.json_edit import add_last, gap_end, line_end, line_start, placed_edits, take_out, whole_lines
from bespeak.text.source.json_tree import JsonTree
from bespeak.text.source.pointer import parent
from bespeak.text.source.toml_tree import TomlTree
from bespeak.text.source.tree import Change, Span, TextEdit, Tree, apply_edits, deletion, insertion
from bespeak.text.source.value_text import LONGEST_KEY, yaml_key, yaml_value
from bespeak.text.source.yaml_tree import YamlTree, node_span

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_HEAD: Final = {"method": re.compile(r"[A-Za-z][\w-]*+"), "path": re.compile(r"/[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+")}


def brace_edits(tree: BraceTree, change: Change) -> tuple[TextEdit, ...] | None:
    """Return the edit that replaces one scalar value, or None."""
    place = tree.place(change.at)
    if change.op != "replace" or place is None or not change.at:
        return None
    if place.entries is not None or place.items is not None or isinstance(change.value, list | dict):
        return None
    if place.key is None:
        head = _HEAD.get(change.at.rpartition("/")[2])
        if head is not None:
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
Edits = tuple[TextEdit, ...] | None


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
        return _removed(tree, change, key, above[-1]) if above else None
    return _added(tree, change, node, flow=flow)


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
    written = yaml_value(change.value, style=_style(node), flow=flow)
    if written is None:
        return None
    if span.start < span.end and text[span.end : span.end + 1].strip(" \t\n,]}"):
        return None  # `{}#`: another value would swallow what follows
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        if "#" in text[span.start : span.end]:
            return None  # there may be comments between the old values
        return _in_place_of(tree, change.at, span, written)
    if span.start == span.end:
        if key is not None and not text.startswith(":", gap_end(text, key.end_mark.index)):
            return (insertion(key.end_mark.index, f": {written}"),) if flow and _takes_colon(key) else None
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


def _removed(tree: YamlTree, change: Change, key: yaml.Node | None, around: yaml.CollectionNode) -> Edits:
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


def _added(tree: YamlTree, change: Change, node: yaml.Node, *, flow: bool) -> Edits:
    text = tree.text
    flow = flow or bool(getattr(node, "flow_style", False))
    written = yaml_value(change.value, flow=flow)
    if written is None:
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


def _takes_colon(key: yaml.Node) -> bool:
    start, end = key.start_mark, key.end_mark
    return bool(start.line == end.line and end.index - start.index <= LONGEST_KEY)


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


__all__ = ["TextEdit", "apply_edits", "edits"]


def edits(tree: Tree, change: Change) -> tuple[TextEdit, ...] | None:
    if tree.is_made(change.at):
        return None
    if isinstance(tree, YamlTree):
        return yaml_edits(tree, change)
    if isinstance(tree, JsonTree | TomlTree):
        return placed_edits(tree, change)
    return brace_edits(tree, change) if isinstance(tree, BraceTree) else None
