"""A schema in work: a root and its definitions, which refer to each other by name, and the marks left by passes.

Nodes are never changed in place, because several places may share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.schema.subschemas import children, with_children

Node = dict[str, Any]
Definitions = Mapping[str, Node]
Pass = Callable[[Node, Definitions], Node]
"""One step of a conversion: a node, whose children are done, to the node in its place."""

PLACE: Final = "#/$defs/"

SAYS: Final = "~says"
"""Mark: sentences about what the schema no longer says."""
OPTIONAL: Final = "~optional"
"""Mark of an object: members that were left out if they are null."""
REST: Final = "~rest"
"""Mark of an object: the member that holds undeclared members as pairs of key and value."""
MAP: Final = "~map"
"""Mark of a list: pairs of key and value that are the members of an object."""
RENAMED: Final = "~renamed"
"""Mark of an object: pairs of a member's name and its original name."""
WRAPPED: Final = "~wrapped"
"""Mark of an object: the member that holds the value itself."""
ONE: Final = "~one"
"""Mark of a union: a value may meet one of the alternatives only."""
UNFIT: Final = "~unfit"
"""Mark: why a value of the original schema may not be expressible here."""

CHANGING: Final = frozenset({OPTIONAL, REST, MAP, RENAMED, WRAPPED})
"""Marks of nodes whose values have to be converted back."""

NOTHING: Final[Node] = {"not": {}}
"""The schema that no value meets."""


@dataclass(frozen=True, slots=True)
class Document:
    """A schema and its definitions. Every `$ref` is the name of a definition after `#/$defs/`."""

    root: Node
    definitions: Definitions

    def apply(self, step: Pass) -> Document:
        """Apply a pass to every node, children first."""
        done = {name: applied(step, node, self.definitions) for name, node in self.definitions.items()}
        return Document(applied(step, self.root, self.definitions), done)

    def pruned(self) -> Document:
        """Leave out definitions that nothing refers to."""
        reached: dict[str, Node] = {}
        waiting = [self.root]
        while waiting:
            for node in nodes(waiting.pop()):
                name = named(node)
                if name is not None and name not in reached:
                    reached[name] = self.definitions[name]
                    waiting.append(reached[name])
        return Document(self.root, {name: node for name, node in self.definitions.items() if name in reached})

    def schema(self) -> Node:
        """Return the schema without marks."""
        plain = _unmarked(self.root)
        if self.definitions:
            plain["$defs"] = {name: _unmarked(node) for name, node in self.definitions.items()}
        return plain


def applied(step: Pass, node: Node, definitions: Definitions) -> Node:
    """Apply a pass to a node and all below it, children first."""
    return step(with_children(node, lambda part: applied(step, part, definitions)), definitions)


def named(node: Node) -> str | None:
    """Return the name of the definition that a node refers to."""
    reference = node.get("$ref")
    return reference.removeprefix(PLACE) if isinstance(reference, str) else None


def resolved(node: Node, definitions: Definitions) -> Node:
    """Follow the reference of a node. Definitions are not references themselves."""
    name = named(node)
    return node if name is None else definitions[name]


def alternatives(node: Node, definitions: Definitions) -> Iterator[Node]:
    """Yield the nodes of which a value meets one, without references and unions."""
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        name = named(each)
        if name is not None:
            if name not in seen:
                seen.add(name)
                waiting.append(definitions[name])
        elif "anyOf" in each:
            waiting += reversed(each["anyOf"])
        else:
            yield each


def is_nullable(node: Node, definitions: Definitions) -> bool:
    """Return True if a node accepts null."""
    return any("null" in types(each) or not types(each) for each in alternatives(node, definitions))


def types(node: Node) -> list[str]:
    """Return the types that a node names; none if it accepts all."""
    named_types = node.get("type", [])
    return [named_types] if isinstance(named_types, str) else named_types


def nodes(root: Node) -> Iterator[Node]:
    """Yield a node and all below it, without following references."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def _unmarked(node: Node) -> Node:
    return with_children({key: value for key, value in node.items() if not key.startswith("~")}, _unmarked)
