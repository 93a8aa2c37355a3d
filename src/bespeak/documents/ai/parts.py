"""Parts: capabilities that exceed one /.well-known/ai document, divided into several documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from bespeak.documents.ai.document import MOST_CAPABILITIES

MOST_BYTES: Final = 64_000
"""Maximum size of a document: 64 kilobytes of 1,000 bytes, the stricter reading of ai-discovery 4.5."""
MOST_PARTS: Final = 90
"""Maximum number of parts that one document links to, to leave room for capabilities."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An encoded capability."""

    group: str
    encoded: bytes
    verb: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """The capabilities of one document, and their groups."""

    name: str
    groups: tuple[str, ...]
    entries: tuple[Entry, ...]
    parts: tuple[Part, ...] = ()
    """Parts that this part links to."""


def fits(entries: Sequence[Entry], room: int) -> bool:
    """Return True if one document can list all entries; `room` is its space for capabilities, in bytes."""
    return len(entries) <= MOST_CAPABILITIES and size_of(entries) <= room


def size_of(entries: Iterable[Entry]) -> int:
    """Return the size of a list of capabilities with its separators, in bytes."""
    return sum(len(entry.encoded) + 1 for entry in entries)


def divide(entries: Iterable[Entry], room: int) -> list[Part]:
    """Divide entries into named parts: a group, a piece of a large group, or several small neighbours.

    If one document cannot link to all parts, index parts link to them.
    """
    by_group: dict[str, list[Entry]] = {}
    for entry in entries:
        by_group.setdefault(entry.group, []).append(entry)
    taken = set(by_group)
    parts: list[Part] = []
    for group in sorted(by_group):
        for number, piece in enumerate(_pieces(by_group[group], room), start=1):
            name = group if number == 1 else _free(group, number, taken)
            parts.append(Part(name, (group,), tuple(piece)))
    if len(parts) > MOST_PARTS:
        parts = _joined(parts, room)
    if len(parts) > MOST_PARTS:
        return _indexed(parts, taken)
    return parts


def _pieces(entries: Iterable[Entry], room: int) -> Iterable[list[Entry]]:
    piece: list[Entry] = []
    left = room
    for entry in entries:
        size = len(entry.encoded) + 1
        if piece and (size > left or len(piece) == MOST_CAPABILITIES):
            yield piece
            piece, left = [], room
        piece.append(entry)
        left -= size
    if piece:
        yield piece


def _joined(parts: Iterable[Part], room: int) -> list[Part]:
    """Merge neighbouring parts while one document can hold them."""
    joined: list[Part] = []
    left = 0
    for part in parts:
        size = size_of(part.entries)
        if joined and size <= left and len(joined[-1].entries) + len(part.entries) <= MOST_CAPABILITIES:
            last = joined[-1]
            name = f"{last.groups[0]}-to-{part.groups[0]}"
            joined[-1] = Part(name, (*last.groups, *part.groups), (*last.entries, *part.entries))
            left -= size
        else:
            joined.append(part)
            left = room - size
    # A combined name may equal the name of a third group.
    names: set[str] = set()
    unique = []
    for part in joined:
        name = part.name if part.name not in names else _free(part.name, 2, names)
        names.add(name)
        unique.append(Part(name, part.groups, part.entries))
    return unique


def _indexed(parts: Sequence[Part], taken: set[str]) -> list[Part]:
    indexes = []
    for number, (_, block) in enumerate(groupby(range(len(parts)), key=lambda index: index // MOST_PARTS), start=1):
        within = tuple(parts[index] for index in block)
        groups = tuple(dict.fromkeys(group for part in within for group in part.groups))
        indexes.append(Part(_free("index", number, taken), groups, (), within))
    return indexes


def _free(name: str, number: int, taken: set[str]) -> str:
    while f"{name}-{number}" in taken:
        number += 1
    found = f"{name}-{number}"
    taken.add(found)
    return found
