"""Plain data from YAML nodes: the types of the YAML 1.2 core schema, restricted to JSON."""

from __future__ import annotations

from typing import Any, Final

import yaml

from bespeak.text.source.scalar import NUMERIC, WORDS, TooLarge, plain_value
from bespeak.text.source.tree import MAX_BYTES, MAX_DEPTH, NotationError
from bespeak.text.source.yaml_loader import STRING

MAX_EXPANDED: Final = 200_000
"""Limit of nodes that aliases may add: without it, nine lines of aliases expand to billions of values."""

_SUSPECT: Final = NUMERIC | {"", "~", "n", "t", "f", "<"}
"""First characters of plain keys that may not be strings."""

_CORE: Final = "tag:yaml.org,2002:"
_TYPES: Final = {f"{_CORE}{name}": kind for name, kind in (("int", int), ("float", float), ("bool", bool))}


def build(root: yaml.Node | None, text: str) -> tuple[Any, bool]:
    """Build the data of a document; also return whether it has aliases."""
    if root is None:
        return None, False
    builder = _Builder(text, watched="*" in text and "&" in text)
    data = builder.value(root)
    return data, builder.aliased


class _Builder:
    __slots__ = ("_active", "_expanded", "_first", "_length", "_text", "_watched", "aliased")

    def __init__(self, text: str, *, watched: bool) -> None:
        self._text = text
        self._watched = watched
        self._active: set[int] = set()
        self._first: set[int] = set()
        self._expanded = 0
        self._length = 0
        self.aliased = False

    def value(self, node: yaml.Node, near: int = 0) -> Any:
        """Build the data of a node; `near` is the end of the text before it, which locates an alias."""
        if self._watched:
            return self._watch(node, near)
        return self._data(node)

    def _data(self, node: yaml.Node) -> Any:
        kind = node.__class__
        if kind is yaml.ScalarNode:
            return _scalar(node)
        if kind is yaml.MappingNode:
            return self._mapping(node)
        return self._list(node)

    def _watch(self, node: yaml.Node, near: int) -> Any:
        me = id(node)
        if me in self._active:
            advice = "Write the inner part out, or use `$ref` in a JSON Schema."
            raise self._at_alias(near, "an alias is inside its own anchor", advice)
        if me not in self._first:
            self._first.add(me)
        else:
            self.aliased = True
            self._expanded += 1
            self._length += _length(node)
            if self._expanded > MAX_EXPANDED:
                message = f"aliases expand this document to more than {MAX_EXPANDED:,} values"
                raise self._at_alias(near, message, "Write fewer aliases of aliases.")
            if self._length > MAX_BYTES:
                message = f"aliases make more than {MAX_BYTES >> 20} MiB of this document"
                raise self._at_alias(near, message, "Write fewer aliases of long texts.")
        if len(self._active) > MAX_DEPTH + 1:
            message = f"aliases nest this document more than {MAX_DEPTH} levels deep"
            raise self._at_alias(near, message, "Write fewer aliases of aliases.")
        self._active.add(me)
        data = self._data(node)
        self._active.discard(me)
        return data

    def _at_alias(self, near: int, message: str, advice: str) -> NotationError:
        at = max(self._text.find("*", near), 0)
        return NotationError(at, at + 1, message, advice)

    def _list(self, node: yaml.Node) -> list[Any]:
        if node.tag and node.tag != f"{_CORE}seq":
            raise _tagged(node)
        if self._watched:
            items: list[Any] = []
            near = node.start_mark.index
            for item in node.value:
                items.append(self._watch(item, near))
                near = max(near, item.end_mark.index)
            return items
        data = self._data
        return [_scalar(item) if item.__class__ is yaml.ScalarNode else data(item) for item in node.value]

    def _mapping(self, node: yaml.Node) -> dict[str, Any]:
        if node.tag and node.tag != f"{_CORE}map":
            raise _tagged(node)
        made: dict[str, Any] = {}
        for key, item in node.value:
            name = key.value
            if key.tag != STRING and (key.__class__ is not yaml.ScalarNode or key.tag or name[:1] in _SUSPECT):
                _check_key(key)
            if name in made:
                raise _repeated(node, key, self._text)
            if self._watched:
                made[name] = self._watch(item, key.end_mark.index)
            elif item.__class__ is yaml.ScalarNode:
                made[name] = _scalar(item)
            else:
                made[name] = self._data(item)
        return made


def _length(node: yaml.Node) -> int:
    """Count the characters of a text or of a mapping's keys: aliases share them in memory but not in output."""
    if node.__class__ is yaml.ScalarNode:
        return len(node.value)
    return sum(len(key.value) for key, _ in node.value) if node.__class__ is yaml.MappingNode else 0


def _scalar(node: yaml.Node) -> Any:
    text = node.value
    tag = node.tag
    if tag == "":
        return _typed(node) if text[:1] in NUMERIC else WORDS.get(text, text)
    if tag == STRING:
        return text
    value = _typed(node)
    if (tag == f"{_CORE}null" and value is None) or type(value) is _TYPES.get(tag):
        return value
    if tag == f"{_CORE}float" and type(value) is int:
        return float(value)
    raise _tagged(node)


def _typed(node: yaml.Node) -> Any:
    try:
        return plain_value(node.value)
    except TooLarge as reason:
        raise _refused(node, str(reason), "Write it in quotes if it is a text.") from None


def _refused(node: yaml.Node, message: str, advice: str) -> NotationError:
    return NotationError(node.start_mark.index, node.end_mark.index, message, advice)


def _check_key(key: yaml.Node) -> None:
    if not isinstance(key, yaml.ScalarNode):
        raise _refused(key, "a list or mapping is used as a key", "Use a text as the key.")
    if key.tag:
        raise _tagged(key)
    text = key.value
    if text == "<<":
        advice = "Write the entries out: JSON, the other form of this document, has no merge keys."
        raise _refused(key, "merge keys (<<) are not supported", advice)
    if (text in WORDS or text[0] in NUMERIC) and not isinstance(_typed(key), str):
        message = f"the key {text:.40} is not a text" if text else "a key is missing before the colon"
        raise _refused(key, message, f'Write it in quotes: "{text:.40}".' if text else "Write the key.")


def _repeated(mapping: yaml.Node, second: yaml.Node, text: str) -> NotationError:
    first = next(key for key, _ in mapping.value if key.value == second.value)
    line = text.count("\n", 0, first.start_mark.index) + 1
    message = f"the key {second.value[:80]!r} is repeated; line {line} has it already"
    return _refused(second, message, "Remove one of the two, or rename it.")


def _tagged(node: yaml.Node) -> NotationError:
    tag = node.tag.removeprefix(_CORE)
    shown = f"!!{tag}" if tag != node.tag else tag
    if node.tag in _TYPES or node.tag == f"{_CORE}null":
        return _refused(node, f"the value is no {tag}", f"Remove the tag {shown}, or correct the value.")
    return _refused(node, f"the tag {shown[:80]} is not supported", "Remove the tag: JSON has none.")
