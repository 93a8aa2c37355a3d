"""Outputs truncated to a length: lists by elements, texts by characters, objects by optional members first."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.contract.schema.view import Members
from bespeak.text.source.pointer import child

_WHOLE: Final = 200  # length up to which a text is never cut: half an id or an address is worse than none
_LEAST: Final = 60  # characters for a member that is cut; with less, it is left out
_MOST_STEPS: Final = 30
_JOINER: Final = "\u200d"
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Gap:
    """What was left out at one place."""

    at: str  # JSON Pointer of the list, text or object
    what: str
    left_out: int
    kept: int

    def to_json(self) -> dict[str, Any]:
        return {"at": self.at, "left_out": self.left_out, "of": self.left_out + self.kept, "what": self.what}


@dataclass(frozen=True, slots=True)
class Cut:
    """An output that fits, and what it lacks."""

    output: Any
    gaps: tuple[Gap, ...]

    @property
    def left_out(self) -> list[dict[str, Any]]:
        return [gap.to_json() for gap in self.gaps[:20]]


def cut(output: Any, most: int, members: Members) -> Cut:
    """Cut an output to a number of characters of JSON. `members` describe it."""
    cutter = _Cutter()
    try:
        return Cut(cutter.cut(output, most, "", members, 0), tuple(cutter.gaps))
    except RecursionError:
        return Cut(None, (Gap("", "values", 1, 0),))


def cut_to_fit(output: Any, most: int, members: Members) -> Cut:
    """Cut an output so that it fits into a number of characters, together with the list of what it lacks."""
    room = most
    while True:
        found = cut(output, room, members)
        if _size([found.output, found.left_out]) <= most or not room:
            return found
        room = room * 2 // 3


class _Cutter:
    def __init__(self) -> None:
        self.gaps: list[Gap] = []

    def cut(self, value: Any, room: int, at: str, members: Members, depth: int) -> Any:
        if _size(value) <= room:
            return value
        if depth > 60 or type(value) not in (str, list, dict):
            self.gaps.append(Gap(at, "values", 1, 0))
            return None
        if type(value) is str:
            return self._cut_text(value, room, at)
        if type(value) is list:
            return self._cut_list(value, room, at, members, depth)
        return self._cut_object(value, room, at, members, depth)

    def _cut_text(self, text: str, room: int, at: str) -> str:
        if len(text) <= _WHOLE:
            return text
        length = max(min(room - _LEAST, len(text)), 0)
        while length and (size := _size(text[:length])) > room - _LEAST // 2:
            length = min(length - 1, length * room // (size + _LEAST))  # characters that JSON escapes
        length = _border(text, length)
        self.gaps.append(Gap(at, "characters", len(text) - length, length))
        return f"{text[:length]}… ({len(text) - length} more characters)"

    def _cut_list(self, elements: list[Any], room: int, at: str, members: Members, depth: int) -> list[Any]:
        kept: list[Any] = []
        left = room - 2
        inner = members.element or members.anything
        for element in elements:
            left -= _size(element) + 1
            if left < 0:
                break
            kept.append(element)
        if not kept and room > 2 * _LEAST:
            kept.append(self.cut(elements[0], room - 2, child(at, "0"), inner, depth + 1))
        if len(kept) < len(elements):
            self.gaps.append(Gap(at, "elements", len(elements) - len(kept), len(kept)))
        return kept

    def _cut_object(self, value: dict[str, Any], room: int, at: str, members: Members, depth: int) -> dict[str, Any]:
        """Give every member an equal part of the room, and what the small ones do not need to the others."""
        sizes = {name: _size(name) + _size(item) + 2 for name, item in value.items()}
        shares, left = {}, room - 2
        for name in sorted(value, key=lambda name: name not in members.required):
            least = min(sizes[name], _size(name) + _LEAST)
            if least <= left:
                left -= least
                shares[name] = least
        left = room - 2
        for rank, name in enumerate(sorted(shares, key=sizes.__getitem__)):
            shares[name] = max(min(sizes[name], left // (len(shares) - rank)), shares[name])
            left -= shares[name]
        if len(shares) < len(value):
            self.gaps.append(Gap(at, "members", len(value) - len(shares), len(shares)))
        return {
            name: self.cut(item, shares[name] - _size(name) - 2, child(at, name), members.below(name), depth + 1)
            for name, item in value.items()
            if name in shares
        }


def _size(value: Any) -> int:
    return len(_encode(value).decode())


def _border(text: str, length: int) -> int:
    """Return the nearest length at which no character that belongs to the one before it is cut off."""
    for _ in range(_MOST_STEPS):
        if not 0 < length < len(text):
            return length
        follows = text[length]
        if not (unicodedata.combining(follows) or follows in "\ufe0e\ufe0f\u200d" or text[length - 1] == _JOINER):
            return length
        length -= 1
    return length
