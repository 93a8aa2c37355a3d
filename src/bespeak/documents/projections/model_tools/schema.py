"""A tool's schema in work: a root and its definitions, which refer to each other by name, and the marks left by passes.

Nodes are never changed in place, because several places may share one. Definitions may contain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.schema.subschemas import children, with_children
from bespeak.contract.schema.view import SchemaView

Node = dict[str, Any]
Definitions = Mapping[str, Node]
Pass = Callable[[Node, Definitions], Node]  # from a node whose children are done to the one in its place

PLACE: Final = "#/$defs/"


class Mark:
    """Keys that passes leave in nodes."""

    SAYS: Final = "~says"  # sentences about what the schema no longer says
    OPTIONAL: Final = "~optional"  # of an object: members that were left out if they are null
    REST: Final = "~rest"  # of an object: the member that holds undeclared members as pairs of key and value
    MAP: Final = "~map"  # of a list: pairs of key and value that are the members of an object
    RENAMED: Final = "~renamed"  # of an object: pairs of a member's name and its original name
    WRAPPED: Final = "~wrapped"  # of an object: the member that holds the value itself
    ONE: Final = "~one"  # of a union: a value may meet one of the alternatives only
    UNFIT: Final = "~unfit"  # why a value of the original schema may not be expressible here


CHANGING: Final = frozenset(
    {Mark.OPTIONAL, Mark.REST, Mark.MAP, Mark.RENAMED, Mark.WRAPPED}
)  # nodes whose values are converted back

NOTHING: Final[Node] = {"not": {}}  # the schema that no value meets


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A schema and its definitions. Every `$ref` is the name of a definition after `#/$defs/`."""

    root: Node
    definitions: Definitions

    def apply(self, step: Pass) -> ToolSchema:
        """Apply a pass to every node, children first."""
        done = {name: applied(step, node, self.definitions) for name, node in self.definitions.items()}
        return ToolSchema(applied(step, self.root, self.definitions), done)

    def pruned(self) -> ToolSchema:
        """Leave out definitions that nothing refers to."""
        reached: dict[str, Node] = {}
        waiting = [self.root]
        while waiting:
            for node in nodes(waiting.pop()):
                name = named(node)
                if name is not None and name not in reached:
                    reached[name] = self.definitions[name]
                    waiting.append(reached[name])
        return ToolSchema(self.root, {name: node for name, node in self.definitions.items() if name in reached})

    def schema(self) -> Node:
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


def view(node: Node, definitions: Definitions) -> SchemaView:
    return SchemaView(node, {"$defs": definitions})


def is_nullable(node: Node, definitions: Definitions) -> bool:
    found = view(node, definitions).types
    return not found or "null" in found


def types(node: Mapping[str, Any]) -> list[str]:
    """Return the types that a node names; none if it accepts all."""
    named_types = node.get("type", [])
    return [named_types] if isinstance(named_types, str) else named_types


def item_at(node: Node, at: int) -> Node:
    first: list[Node] = node.get("prefixItems", [])
    others: Node = node.get("items", {})
    return first[at] if at < len(first) else others


def nodes(root: Node) -> Iterator[Node]:
    """Yield a node and all below it, without following references."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def _unmarked(node: Node) -> Node:
    return with_children({key: value for key, value in node.items() if not key.startswith("~")}, _unmarked)


def circular(definitions: Definitions) -> frozenset[str]:
    """Return the names of definitions on a circle of references, and of those between two circles."""
    leads = {name: {target for target in map(named, nodes(node)) if target} for name, node in definitions.items()}
    return frozenset(_trimmed(_trimmed(leads)))


def open_unions(document: ToolSchema) -> ToolSchema:
    """Replace alternatives that lead back to their own union by its alternatives: a value gets no smaller that way."""
    definitions = document.definitions
    leads = {
        name: {target for target in map(named, node.get("anyOf", ())) if target and "anyOf" in definitions[target]}
        for name, node in definitions.items()
    }
    made = {name: {**definitions[name], "anyOf": _options(name, definitions)} for name in _trimmed(_trimmed(leads))}
    return ToolSchema(document.root, {**definitions, **made})


def _options(name: str, definitions: Definitions) -> list[Node]:
    """Return the alternatives of a union, and of the unions among them, once each."""
    seen, found, waiting = {name}, [], list(reversed(definitions[name]["anyOf"]))
    while waiting:
        option = waiting.pop()
        target = named(option)
        if target is None or "anyOf" not in definitions[target]:
            found.append(option)
        elif target not in seen:
            seen.add(target)
            waiting += reversed(definitions[target]["anyOf"])
    return found or [{}]


def relax_circles(document: ToolSchema) -> ToolSchema:
    """Make members optional through which a definition contains itself: Gemini unrolls circles only there."""
    names = circular(document.definitions)

    def relaxed(node: Node, _: Definitions) -> Node:
        needed = [name for name in node.get("required", ()) if _refers(node["properties"].get(name, {}), names)]
        if not needed:
            return node
        left = [name for name in node["required"] if name not in needed]
        return {**node, "required": left, Mark.SAYS: [*node.get(Mark.SAYS, ()), f"Always give {' and '.join(needed)}."]}

    circles = ToolSchema({}, {name: document.definitions[name] for name in names}).apply(relaxed)
    return ToolSchema(document.root, {**document.definitions, **circles.definitions})


def _refers(node: Node, names: frozenset[str]) -> bool:
    return any(named(each) in names for each in nodes(node))


def _trimmed(leads: dict[str, set[str]]) -> dict[str, set[str]]:
    """Remove, again and again, what leads nowhere; return the rest with all references turned round."""
    back: dict[str, set[str]] = {name: set() for name in leads}
    for name, targets in leads.items():
        for target in targets:
            back[target].add(name)
    open_ends = {name: len(targets) for name, targets in leads.items()}
    waiting = [name for name, count in open_ends.items() if not count]
    while waiting:
        for name in back.pop(waiting.pop()):
            open_ends[name] -= 1
            if not open_ends[name]:
                waiting.append(name)
    return {name: {source for source in sources if source in back} for name, sources in back.items()}
