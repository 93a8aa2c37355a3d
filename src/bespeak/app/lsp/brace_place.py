"""Place of an offset in AGIS's brace notation: enclosing blocks and key."""

from __future__ import annotations

import re
from typing import Final

from bespeak.app.lsp.flow_place import ITEM, Place, flow_place

_TOKEN: Final = re.compile(
    r"""(?P<text>"(?:[^"\\\n]++|\\.)*+"?+)
      | (?P<comment>(?<!\S)\#[^\n]*+)
      | (?:^|(?<=[{,;\s]))[ \t]*+[A-Za-z][\w-]*+[ \t]++/(?P<endpoint>[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+)\s*+\{
      | (?P<block>[A-Za-z_][\w-]*+)[ \t]*+\{
      | (?P<template>/[^\s{}]*+\{[^\s{}]*+\})
      | (?P<close>\})
      | (?P<open>\{)""",
    re.VERBOSE | re.MULTILINE,
)
_KEY: Final = re.compile(r"[ \t]*+(?P<dash>-[ \t]++)?(?P<key>[A-Za-z_][\w-]*+)[ \t]*+:(?:[ \t]++|$)(?P<rest>.*+)")
_LIST_KEY: Final = re.compile(r"[ \t]*+(?P<key>[A-Za-z_][\w-]*+)[ \t]*+:[ \t]*+$")


def brace_place(text: str, offset: int) -> Place:
    """Return the place of an offset."""
    path = _blocks(text, offset)
    start = text.rfind("\n", 0, offset) + 1
    start = max(start, text.rfind("{", start, offset) + 1)  # a block may open and continue on one line
    line = text[start:offset]
    assigned = _KEY.match(line)
    if assigned is not None:
        key_path = (*path, assigned["key"])
        if assigned["rest"][:1] == "[":
            inside = flow_place(text, start + assigned.start("rest"), offset)
            if inside is not None:
                return Place(key_path + inside.path, inside.is_key)
        return Place(key_path, is_key=False)
    if line.lstrip().startswith("-"):
        return Place((*path, *_list_above(text, start), ITEM), is_key=True)
    return Place(path, is_key=True)


def _blocks(text: str, offset: int) -> tuple[str, ...]:
    """Return the names of the blocks that are open at an offset."""
    blocks: list[tuple[str, ...]] = []
    for token in _TOKEN.finditer(text, 0, offset):
        kind = token.lastgroup
        if kind == "endpoint":
            blocks.append(("endpoints", ITEM))
        elif kind == "block":
            blocks.append((token["block"],))
        elif kind == "open":
            blocks.append(())
        elif kind == "close" and blocks:
            blocks.pop()
    return tuple(name for block in blocks for name in block)


def _list_above(text: str, start: int) -> tuple[str, ...]:
    """Return the key of the list whose items have dashes, if it is on a line above them."""
    while start > 0:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        line = text[start:end].rstrip("\r")
        key = _LIST_KEY.match(line)
        if key is not None:
            return (key["key"],)
        if line.strip() and not line.lstrip().startswith("-"):
            break
    return ()
