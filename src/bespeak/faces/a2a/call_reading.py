"""The call that a message asks for: one data part that names a skill and its input. Nothing else is carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.text.reading.json_data import decode_json

SKILL: Final = ("skill", "skillId", "skill_id")
"""Members of a data part that name the skill; agents use different ones."""
INPUT: Final = ("input", "arguments", "parameters", "params")
"""Members that hold the arguments."""
FORM: Final = '{"skill": ID, "input": {...}}'


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call. Without a skill it is for the one that the task has."""

    skill: str | None
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """A text, which calls nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Misread:
    """Reason why a message is not a call."""

    message: str
    is_file: bool = False
    """True if it has a part of a kind that no skill takes."""


def read_call(parts: Sequence[Any]) -> Wanted | Told | Misread:
    """Read the parts of a message, as they were sent. Parts of A2A 0.3 have a `kind` besides."""
    objects: list[Any] = []
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict) or part.keys() & {"file", "raw", "url"}:
            return Misread("Skills take data, not files: nothing is fetched. Send one data part.", is_file=True)
        if "data" in part:
            objects.append(part["data"])
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    if len(objects) > 1:
        return Misread(f"A message calls one skill; it has {len(objects)} data parts.")
    if objects:
        return _wanted(objects[0])
    written = _written(texts[0]) if len(texts) == 1 else None
    return Told("\n".join(texts)) if written is None else _wanted(written)


def _written(text: str) -> dict[str, Any] | None:
    """Return the data part that a text is; None for any other text. Some clients can send nothing but texts."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = decode_json(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) and not found.keys().isdisjoint(SKILL) else None


def _wanted(data: Any) -> Wanted | Misread:
    if not isinstance(data, dict):
        return Misread(f"The data part must be an object: {FORM}.")
    named, given = [name for name in SKILL if name in data], [name for name in INPUT if name in data]
    for found in (named, given):
        if len(found) > 1:
            return Misread(f"The data part has {' and '.join(found)}, which mean the same; keep one of them.")
    others = [name for name in data if name not in (*named, *given)]
    if others:
        shown = ", ".join(repr(name[:80]) for name in others[:5])
        return Misread(f"The data part has unknown members: {shown}. Arguments go into `input`: {FORM}.")
    if not named and not given:
        return Misread(f"The data part does not name a skill: {FORM}.")
    skill = data[named[0]] if named else None
    arguments = data[given[0]] if given else {}
    if named and not isinstance(skill, str):
        return Misread(f"`{named[0]}` must be the id of a skill; got {type(skill).__name__}.")
    if not isinstance(arguments, dict):
        return Misread(f"`{given[0]}` must be an object; got {type(arguments).__name__}.")
    return Wanted(skill, arguments)
