"""Steps from a subschema to others that check the same value: combinations, conditions and references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.contract.schema.reference import REFERENCES, target

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")

Place = tuple[str | int, ...]


class Steps:
    """The nodes of a schema, and the steps between those that check the same value."""

    def __init__(self, nodes: list[tuple[Place, dict[str, Any]]]) -> None:
        self._nodes = nodes
        self._root = nodes[0][1]
        resources = {at: node for at, node in nodes if at and "$id" in node}
        self._base: dict[int, dict[str, Any]] = {}
        """Enclosing schema with an `$id`, by the id of a node, if it is not the root."""
        if resources:
            for at, node in nodes:
                around = next((resources[at[:end]] for end in range(len(at), 0, -1) if at[:end] in resources), None)
                if around is not None:
                    self._base[id(node)] = around
        self._anchors = {
            f"#{node[key]}": node for _, node in nodes for key in _ANCHORS if isinstance(node.get(key), str)
        }

    def all(self) -> Iterator[dict[str, Any]]:
        """Return every node."""
        return (node for _, node in self._nodes)

    def of(self, node: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the schemas that check the same value as a node does."""
        found: list[Any] = [item for key in _LISTS if isinstance(node.get(key), list) for item in node[key]]
        found += [node[key] for key in _SINGLE if key in node]
        dependent = node.get("dependentSchemas")
        found += dependent.values() if isinstance(dependent, dict) else ()
        found += [self._target(node[key], node) for key in REFERENCES if key in node]
        return [step for step in found if isinstance(step, dict)]

    def _target(self, reference: Any, node: Mapping[str, Any]) -> Any:
        if not isinstance(reference, str):
            return None
        here: Any = self._base.get(id(node), self._root)
        if reference in ("", "#"):
            return here
        return target(reference, here) if reference.startswith("#/") else self._anchors.get(reference)
