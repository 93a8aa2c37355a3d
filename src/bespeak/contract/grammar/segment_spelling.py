"""The spelling of a path segment (AGIS 5): lower-case words with hyphens, or a parameter `{name}`."""

from __future__ import annotations

import re
from typing import Final

from bespeak.text.diagnostics.brief import brief

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_FOREIGN: Final = re.compile(r":([A-Za-z0-9_]+)|<(?:\w+:)?([A-Za-z0-9_]+)>", re.ASCII)
"""Parameter in the notation of other frameworks."""
_SLIP: Final = re.compile(r"\{\{(\w+)\}\}|\{(\w+)|(\w+)\}|\[(\w+)\]|\{([\w-]+)\}", re.ASCII)
"""Mistyped parameter."""
_BRACKETS: Final = frozenset("{}<>[]")
_SIGNS: Final = {" ": "a space", ".": "a dot", "%": "a percent sign", "*": "a star", ":": "a colon", "-": "a hyphen"}


def is_name(segment: str) -> bool:
    """Return True if a segment is lower-case words with single hyphens between them."""
    return _NAME.fullmatch(segment) is not None


def is_camel(segment: str) -> bool:
    """Return True if capitals separate the words of a segment."""
    return _HUMP.search(segment) is not None


def hyphenated(segment: str) -> str:
    """Write the words of a segment in lower case with hyphens between them."""
    return _HUMP.sub("-", segment).replace("_", "-").lower()


def odd_character(segment: str) -> str:
    """Name the first character that is not allowed in a segment."""
    for char in segment:
        if not (char.isascii() and char.isalnum()) and char not in "-_":
            return _SIGNS.get(char, brief(char))
    return "a hyphen or an underscore that is not between words"


def is_parameter(segment: str) -> bool:
    """Return True if a segment is meant as a parameter, in any notation."""
    return segment.startswith(":") or not _BRACKETS.isdisjoint(segment)


def parameter_name(segment: str) -> str:
    """Return the name in `{name}`; empty if the segment is anything else."""
    return _first_group(_PARAMETER.fullmatch(segment))


def foreign_parameter(segment: str) -> str:
    """Return the name in `:name` or `<type:name>`; empty if the segment is anything else."""
    return _first_group(_FOREIGN.fullmatch(segment))


def meant_parameter(segment: str) -> str:
    """Guess the name of a parameter in a foreign or mistyped notation; empty if there is none."""
    return foreign_parameter(segment) or _first_group(_SLIP.fullmatch(segment)).replace("-", "_")


def _first_group(match: re.Match[str] | None) -> str:
    return next(filter(None, match.groups()), "") if match else ""
