"""From (method, path) to an endpoint: literal paths by equality, templates through a trie (AGTP-API 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar
from urllib.parse import unquote

from bespeak.contract.grammar.path_syntax import Template

T = TypeVar("T")


class _Node(Generic[T]):
    """One segment of the registered templates of a method."""

    __slots__ = ("children", "parameter", "value")

    def __init__(self) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.parameter: _Node[T] | None = None
        self.value: tuple[T, tuple[str, ...]] | None = None


class Router(Generic[T]):
    """Finds the value registered for a method on a path. The most specific match wins."""

    def __init__(self) -> None:
        self.literals: dict[str, dict[str, T]] = {}
        """path -> method -> value, for the hot path."""
        self._templates: dict[str, _Node[T]] = {}

    def add(self, method: str, template: Template, value: T) -> None:
        """Register a value, replacing an earlier one for the same pair. Lint has refused ambiguous templates."""
        if template.is_literal:
            self.literals.setdefault(template.path, {})[method] = value
            return
        node = self._templates.setdefault(method, _Node())
        for segment in template.segments:
            if segment is None:
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.children.setdefault(segment, _Node())
        node.value = (value, template.parameters)

    def find(
        self, method: str, path: str, admits: Callable[[T], bool] | None = None
    ) -> tuple[T, dict[str, str] | None] | None:
        """Return the value for a method on a path, with the template's captured parameters, percent-decoded.

        Values that `admits` rejects are treated as if they were not registered.
        """
        methods = self.literals.get(path)
        if methods is not None:
            value = methods.get(method)
            if value is not None and (admits is None or admits(value)):
                return value, None
        root = self._templates.get(method)
        if root is None:
            return None
        segments = path[1:].split("/")
        best: tuple[int, tuple[T, tuple[str, ...]], tuple[str, ...]] | None = None
        for found, captures in _walk(root, segments, 0, ()):
            if (best is None or len(captures) < best[0]) and (admits is None or admits(found[0])):
                best = (len(captures), found, captures)
        if best is None:
            return None
        value, names = best[1]
        return value, {name: unquote(text) for name, text in zip(names, best[2], strict=True)}

    def methods_at(self, path: str) -> list[str]:
        """Return the methods registered on a path, sorted, for the body of a 405."""
        found = set(self.literals.get(path, ()))
        found.update(method for method in self._templates if self.find(method, path) is not None)
        return sorted(found)


def _walk(
    node: _Node[T], segments: list[str], at: int, captures: tuple[str, ...]
) -> Iterator[tuple[tuple[T, tuple[str, ...]], tuple[str, ...]]]:
    if at == len(segments):
        if node.value is not None:
            yield node.value, captures
        return
    child = node.children.get(segments[at])
    if child is not None:
        yield from _walk(child, segments, at + 1, captures)
    if node.parameter is not None and segments[at]:
        yield from _walk(node.parameter, segments, at + 1, (*captures, segments[at]))
