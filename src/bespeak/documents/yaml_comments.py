"""Comments of a YAML text, each with the entry it belongs to, so that a rewritten text keeps them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml

from bespeak.documents.yaml_writer import Comments
from bespeak.text.source.pointer import ABSENT, child, parent, value_at
from bespeak.text.source.tree import Span
from bespeak.text.source.yaml_tree import YamlTree

_COMMENT: Final = re.compile(r"(?<![^ \t\n])#[^\n]*")
_VISIBLE: Final = re.compile(r"[^\n]")
_BLOCK_STYLES: Final = frozenset("|>")


def comment_texts(tree: YamlTree) -> list[str]:
    """Return every comment of a text, in order."""
    return [match[0].rstrip() for match in _COMMENT.finditer(_without_scalars(tree))]


def first_comment(tree: YamlTree) -> Span | None:
    """Return the position of the first comment of a text."""
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
