"""YAML text to plain data with places.

libyaml decides what is YAML and composes nodes with exact places. Plain scalars get the types of the YAML 1.2 core
schema. Constructs that JSON cannot express (tags, merge keys, non-string keys) are refused: the draft requires both
serializations to mean the same.
"""

from __future__ import annotations

from typing import Any

import yaml

from bespeak.text.source.garbage import without_collections
from bespeak.text.source.pointer import is_index, unescaped
from bespeak.text.source.tree import NotationError, Span, SyntaxFault, Tree, plain, too_long
from bespeak.text.source.yaml_data import build
from bespeak.text.source.yaml_fault import fault_of, unprintable
from bespeak.text.source.yaml_loader import compose, despite_tab_lines


class YamlTree(Tree):
    """A YAML document and its nodes."""

    __slots__ = ("_entries", "has_aliases", "root")

    notation = "yaml"

    def __init__(self, data: Any, root: yaml.Node | None, text: str, file: str, *, crlf: bool, aliases: bool) -> None:
        super().__init__(data, text, file, crlf=crlf)
        self.root = root
        self.has_aliases = aliases
        """True if aliases repeat a part of the document: a place is then the anchor's."""
        self._entries: dict[int, dict[str, tuple[yaml.Node, yaml.Node]]] = {}

    def entry(self, at: str) -> tuple[yaml.Node | None, yaml.Node] | None:
        """Return the nodes of a key and its value; a list item has no key."""
        if self.root is None:
            return None
        key: yaml.Node | None = None
        node = self.root
        for part in at.split("/")[1:]:
            if isinstance(node, yaml.MappingNode):
                found = self._mapping(node).get(unescaped(part))
                if found is None:
                    return None
                key, node = found
            elif isinstance(node, yaml.SequenceNode) and is_index(part, node.value):
                key, node = None, node.value[int(part)]
            else:
                return None
        return key, node

    def _key_span(self, at: str) -> Span | None:
        found = self.entry(at)
        if found is None or not at:
            return None
        key, value = found
        return node_span(self.text, key or value)

    def _value_span(self, at: str) -> Span | None:
        found = self.entry(at)
        return None if found is None else node_span(self.text, found[1])

    def _mapping(self, node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        entries = self._entries.get(id(node))
        if entries is None:
            entries = self._entries[id(node)] = {key.value: (key, value) for key, value in node.value}
        return entries


def parse_yaml(text: str, file: str) -> YamlTree | SyntaxFault:
    """Parse YAML text; return a Fault if it is not valid."""
    text, crlf = plain(text)
    refused = too_long(text, file) or unprintable(text, file)
    if refused is not None:
        return refused
    with without_collections():
        try:
            root, _ = despite_tab_lines(compose, text, filler=" ")  # edits need the same offsets
            data, aliases = build(root, text)
        except NotationError as reason:
            return reason.fault(text, file)
        except yaml.YAMLError as error:
            return fault_of(error, text, file)
    return YamlTree(data, root, text, file, crlf=crlf, aliases=aliases)


def node_span(text: str, node: yaml.Node) -> Span:
    """Return the span of a node without what libyaml counts after it: a block ends with its last value."""
    start = node.start_mark.index
    last = node
    while isinstance(last, yaml.CollectionNode) and not last.flow_style and last.value:
        following = last.value[-1]
        if isinstance(following, tuple):
            key, value = following
            following = key if value.start_mark.index < key.start_mark.index else value
        if following.start_mark.index < start:
            break  # an alias as the last thing of a block: its anchor stands elsewhere
        last = following
    # A block text ends with its last line, and blanks in that line belong to it.
    blanks = "\n" if isinstance(last, yaml.ScalarNode) and last.style in {"|", ">"} else None
    return Span(start, start + len(text[start : last.end_mark.index].rstrip(blanks)))
