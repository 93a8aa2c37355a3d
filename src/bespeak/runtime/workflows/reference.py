"""References from the parameters of a step to what earlier steps returned.

A parameter `{"$from": "search.items[0].id"}` anywhere inside the parameters stands for that value: the name or number
of a step, then members and positions. `{"$expr": "steps.search.items[0].price * 2.0"}` stands for the value of an
expression, which knows the earlier steps that have an identifier as their name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from bespeak.protocol.fault import Fault

FROM: Final = "$from"
EXPRESSION: Final = "$expr"
INPUT: Final = "input"
"""Name by which the steps of a procedure refer to its input."""
_PATH: Final = re.compile(r"[A-Za-z0-9_-]+(\.[^.\[\]]+|\[\d{1,6}\])*")
_PART: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_DEEPEST: Final = 32
MOST_COPIED: Final = 8 * 1024 * 1024
"""Bytes that references and expressions put into the inputs of one workflow: copies of copies grow without end."""


class Room:
    """Bytes that may still be copied."""

    def __init__(self, left: int = MOST_COPIED) -> None:
        self._left = left

    def take(self, value: Any) -> Fault | None:
        """Count a value that is copied; return a Fault if there is no room for it."""
        if self._left >= 0:
            self._left -= len(msgspec.json.encode(value))
        if self._left >= 0:
            return None
        return Fault(f"references copy more than {MOST_COPIED // 1024} KiB into the inputs of steps")


def check_references(value: Any, known: Collection[str], depth: int = 0) -> str | None:
    """Return what is wrong with the references inside a value; `known` are the names of earlier steps."""
    if depth > _DEEPEST:
        return f"parameters are nested more than {_DEEPEST} levels deep"
    if isinstance(value, dict):
        if FROM in value:
            return _check_reference(value, known)
        if EXPRESSION in value:
            is_one = len(value) == 1 and isinstance(value[EXPRESSION], str)
            return None if is_one else f"an object with {EXPRESSION} has nothing but the text of an expression"
        return next((fault for one in value.values() if (fault := check_references(one, known, depth + 1))), None)
    if isinstance(value, list):
        return next((fault for one in value if (fault := check_references(one, known, depth + 1))), None)
    return None


def _check_reference(value: Mapping[str, Any], known: Collection[str]) -> str | None:
    path = value[FROM]
    if len(value) != 1 or not isinstance(path, str) or _PATH.fullmatch(path) is None:
        return (
            f"{str(path)[:80]!r} is not a valid reference; write the name of a step and a path, like search.items[0].id"
        )
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    if name not in known:
        return f"{path[:80]!r} refers to {name!r}, which is not an earlier step"
    return None


def expressions_in(value: Any) -> Iterator[str]:
    """Yield the expressions inside a value whose references are valid."""
    if isinstance(value, dict):
        if EXPRESSION in value:
            yield value[EXPRESSION]
            return
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from expressions_in(one)


def variables_of(names: Iterable[str]) -> dict[str, str]:
    """Return the variables of expressions: the name of each, and that of the step or input that it means."""
    return {one if one == INPUT else f"steps.{one}": one for one in names if one.isidentifier() and one.isascii()}


def resolve(
    value: Any, outputs: Mapping[str, Any], computed: Mapping[str, Any] | None = None, room: Room | None = None
) -> Any | Fault:
    """Replace the references inside a value; return a Fault for one that leads nowhere, or copies too much.

    `computed` are the values of the expressions in it.
    """
    room = room or Room()
    if isinstance(value, dict):
        if FROM in value:
            return _copied(_follow(value[FROM], outputs), room)
        if EXPRESSION in value and computed is not None:
            return _copied(computed[value[EXPRESSION]], room)
        made = {name: resolve(one, outputs, computed, room) for name, one in value.items()}
        return next((one for one in made.values() if isinstance(one, Fault)), made)
    if isinstance(value, list):
        items = [resolve(one, outputs, computed, room) for one in value]
        return next((one for one in items if isinstance(one, Fault)), items)
    return value


def _copied(found: Any, room: Room) -> Any | Fault:
    return found if isinstance(found, Fault) else room.take(found) or found


def _follow(path: str, outputs: Mapping[str, Any]) -> Any | Fault:
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    if name not in outputs:
        return Fault(f"{path!r} refers to a step that returned nothing", path)
    found = outputs[name]
    for match in _PART.finditer(path, len(name)):
        member, position = match.groups()
        if member is not None and isinstance(found, dict) and member in found:
            found = found[member]
        elif position is not None and isinstance(found, list) and int(position) < len(found):
            found = found[int(position)]
        else:
            return Fault(f"{path!r} leads nowhere: there is no {match.group()!r}", path)
    return found
