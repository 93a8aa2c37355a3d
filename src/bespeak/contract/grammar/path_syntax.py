"""The path grammar: structure, templates, and method names that leak into paths (AGTP-API 5).

path           = "/" [ segment-nz *( "/" segment ) ]
segment        = *segment-char
segment-nz     = 1*segment-char
segment-char   = unreserved / pct-encoded / sub-delims / ":" / "@"
parameter      = "{" parameter-name "}"
parameter-name = 1*( ALPHA / DIGIT / "_" )
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from bespeak.protocol.fault import Fault

_CHARACTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})"
_SEGMENT = re.compile(f"{_CHARACTER}*")
_PARAMETER = re.compile(r"\{([A-Za-z0-9_]+)\}")
_WELL_FORMED = re.compile(rf"/(?:(?:{_CHARACTER}+|{_PARAMETER.pattern})(?:/+(?:{_CHARACTER}+|{_PARAMETER.pattern}))*)?")

_LONGEST_CACHED = 500
"""Agents propose paths too, and the cache must stay small."""


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed path: literal segments, and None for each parameter, with the names beside."""

    path: str
    segments: tuple[str | None, ...]
    parameters: tuple[str, ...]

    @property
    def is_literal(self) -> bool:
        """True if the path has no parameters, so that equality is enough to match it."""
        return not self.parameters


def check_structure(path: str) -> Fault | None:
    """Return what is wrong with a path's structure, apart from method names. Parameters are accepted."""
    if _WELL_FORMED.fullmatch(path) is not None:
        return None
    if not path.startswith("/"):
        return Fault(f"a path begins with '/': {_quote(path)}", path)
    if path.endswith("/"):
        return Fault(f"a path does not end with '/': write {_quote(path.rstrip('/') or '/')}")
    for position, segment in enumerate(path[1:].split("/")):
        if not segment and position == 0:
            return Fault(f"the first segment is empty in {_quote(path)}")
        if "{" in segment or "}" in segment:
            if _PARAMETER.fullmatch(segment) is None:
                return Fault(
                    f"{_quote(segment)} is not a valid parameter: a parameter is a whole segment of the form "
                    "{name}, with letters, digits and '_'",
                    segment,
                )
        elif _SEGMENT.fullmatch(segment) is None:
            return Fault(f"{_quote(segment)} contains characters that are not allowed in a path segment", segment)
    return None


def leaking_segment(path: str, verbs: Container[str]) -> str | None:
    """Return the first segment that equals a verb, ignoring case, '-' and '_' (AGTP-API 5.1); parameters are exempt."""
    for segment in path[1:].split("/"):
        if segment.startswith("{"):
            continue
        literal = unquote(segment) if "%" in segment else segment
        # Verbs are ASCII; upper() alone would read a long s as S.
        if literal.isascii() and literal.replace("-", "").replace("_", "").upper() in verbs:
            return segment
    return None


def check_leakage(path: str, verbs: Container[str]) -> Fault | None:
    """Return the fault of a well-formed path that contains a method name."""
    segment = leaking_segment(path, verbs)
    if segment is None:
        return None
    return Fault(f"the segment {_quote(segment)} is a method name: methods go before the path, not in it", segment)


def check_path(path: str, verbs: Container[str]) -> Fault | None:
    """Return what is wrong with a path, for a 460 answer; None if it is valid."""
    return check_structure(path) or check_leakage(path, verbs)


def parse_template(path: str) -> Template | Fault:
    """Parse a path for the router; cached, since declaring, linting and registering an endpoint each parse it."""
    return _parse_cached(path) if len(path) <= _LONGEST_CACHED else _parse(path)


def _parse(path: str) -> Template | Fault:
    fault = check_structure(path)
    if fault is not None:
        return fault
    if "{" not in path:
        return Template(path, tuple(path[1:].split("/")), ())
    segments: list[str | None] = []
    parameters: list[str] = []
    for segment in path[1:].split("/"):
        match = _PARAMETER.fullmatch(segment)
        if match is None:
            segments.append(segment)
            continue
        name = match.group(1)
        if name in parameters:
            return Fault(f"the parameter {_quote(segment)} occurs twice in {_quote(path)}", segment)
        parameters.append(name)
        segments.append(None)
    return Template(path, tuple(segments), tuple(parameters))


_parse_cached = lru_cache(maxsize=1 << 14)(_parse)


def _quote(text: str) -> str:
    """Quote and shorten a text for a message."""
    return repr(text if len(text) <= 120 else text[:119] + "…")
