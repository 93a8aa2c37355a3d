"""Operations beside an operation: those that read its state, and those that take back what it does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from bespeak.documents.adoption.candidate import READING
from bespeak.documents.adoption.naming import singular, words
from bespeak.documents.adoption.taking_back import takes_back
from bespeak.documents.openapi.description import Operation
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.two_word_verb import two_word_verb

_CORRECTING: Final = frozenset({"DELETE", "PUT", "PATCH"})
"""Methods on a thing that take back or correct its creation."""
_REMOVING: Final = 0.5
_ITEM: Final = "{}"

Shape = tuple[str, ...]


class Siblings:
    """The operations of one description, by the shapes of their paths."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._methods: defaultdict[tuple[str, Shape], set[str]] = defaultdict(set)
        self._of_items: defaultdict[str, set[str]] = defaultdict(set)
        self._commands: defaultdict[Shape, set[str]] = defaultdict(set)
        self._deeds: defaultdict[tuple[Shape, Shape], set[str]] = defaultdict(set)
        for one in operations:
            for thing, word in _deeds(one):
                self._deeds[thing].add(word)
            shape = _shape(one.path)
            self._methods[one.base, shape].add(one.method)
            if len(shape) > 1 and shape[-1] == _ITEM:
                self._of_items[shape[-2]].add(one.method)
            elif one.method in ("POST", "PUT"):
                self._commands[shape[:-1]].add("".join(words(shape[-1])) if shape else "")

    def has_readable_state(self, operation: Operation) -> bool:
        """Return True if a GET returns what this operation overwrites."""
        return "GET" in self._methods[operation.base, _shape(operation.path)]

    def is_undone(self, operation: Operation) -> bool:
        """Return True if another operation deletes, corrects or reverses what this one does."""
        shape = _shape(operation.path)
        if any(takes_back(other, word) for thing, word in _deeds(operation) for other in self._deeds[thing]):
            return True
        if operation.method not in ("POST", "PUT") or not shape:
            return False
        if "DELETE" in self._methods[operation.base, shape]:
            return True
        if operation.method == "PUT" or shape[-1] == _ITEM:
            return False
        ending = (operation_classes(command) for command in self._commands[(*shape, _ITEM)])
        removed = any(classes is not None and classes.of("DELETE") >= _REMOVING for classes in ending)
        return removed or not _CORRECTING.isdisjoint(self._of_items[shape[-1]])


def _shape(path: str) -> Shape:
    """Return the segments of a path with all parameters alike."""
    return tuple(_ITEM if "{" in segment else segment for segment in path.split("/") if segment)


def _deeds(operation: Operation) -> Iterator[tuple[tuple[Shape, Shape], str]]:
    """Yield each word of a name and of a command that may be the verb, with all it is about."""
    shape = _shape(operation.path)
    if operation.method in READING:
        return
    for name, around in ((operation.operation_id, ()), (shape[-1] if shape else "", shape[:-1])):
        parts = tuple(singular(part) for part in words(name))
        for at, part in enumerate(parts):
            if parts[:at] or parts[at + 1 :] or around:
                yield (around, parts[:at] + parts[at + 1 :]), part
            joined = two_word_verb(part, parts[: at + 2], at)  # powerOff
            if joined:
                yield (around, parts[:at] + parts[at + 2 :]), joined
