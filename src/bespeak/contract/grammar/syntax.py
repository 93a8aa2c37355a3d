"""Syntax of method names and paths: structure, templates, spelling, and paths filled with values (AGTP-API 3.2, 5).

path           = "/" [ segment-nz *( "/" segment ) ]
segment        = *segment-char
segment-nz     = 1*segment-char
segment-char   = unreserved / pct-encoded / sub-delims / ":" / "@"
parameter      = "{" parameter-name "}"
parameter-name = 1*( ALPHA / DIGIT / "_" )
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.identifiers import apart

_CHARACTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})"
_SEGMENT = re.compile(f"{_CHARACTER}*")
_PARAMETER = re.compile(r"\{([A-Za-z0-9_]+)\}")
_WELL_FORMED = re.compile(rf"/(?:(?:{_CHARACTER}+|{_PARAMETER.pattern})(?:/+(?:{_CHARACTER}+|{_PARAMETER.pattern}))*)?")
_LONGEST_CACHED = 500  # agents propose paths too, and the cache must stay small


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
    return repr(text if len(text) <= 120 else text[:119] + "…")


_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FOREIGN: Final = re.compile(r":([A-Za-z0-9_]+)|<(?:\w+:)?([A-Za-z0-9_]+)>", re.ASCII)
"""Parameter in the notation of other frameworks."""
_SLIP: Final = re.compile(r"\{\{(\w+)\}\}|\{(\w+)|(\w+)\}|\[(\w+)\]|\{([\w-]+)\}", re.ASCII)  # mistyped parameter
_BRACKETS: Final = frozenset("{}<>[]")
_SIGNS: Final = {" ": "a space", ".": "a dot", "%": "a percent sign", "*": "a star", ":": "a colon", "-": "a hyphen"}


def is_name(segment: str) -> bool:
    """Return True if a segment is lower-case words with single hyphens between them."""
    return _NAME.fullmatch(segment) is not None


def is_camel(segment: str) -> bool:
    return apart(segment) != segment


def hyphenated(segment: str) -> str:
    return apart(segment, "-").replace("_", "-").lower()


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
    return _first_group(_PARAMETER.fullmatch(segment))


def foreign_parameter(segment: str) -> str:
    """Return the name in `:name` or `<type:name>`; empty if the segment is anything else."""
    return _first_group(_FOREIGN.fullmatch(segment))


def meant_parameter(segment: str) -> str:
    """Guess the name of a parameter in a foreign or mistyped notation; empty if there is none."""
    return foreign_parameter(segment) or _first_group(_SLIP.fullmatch(segment)).replace("-", "_")


def _first_group(match: re.Match[str] | None) -> str:
    return next(filter(None, match.groups()), "") if match else ""


class _ShapeNode:
    """Templates with literals at the same places, indexed by some of these literals."""

    __slots__ = ("_indexes", "_templates")

    def __init__(self) -> None:
        self._templates: list[Template] = []
        self._indexes: dict[int, dict[tuple[str | None, ...], Template]] = {}

    def add(self, template: Template) -> None:
        self._templates.append(template)
        for places, index in self._indexes.items():
            index.setdefault(_literals(template, places), template)

    def find(self, template: Template, places: int) -> Template | None:
        index = self._indexes.get(places)
        if index is None:
            index = self._indexes[places] = {_literals(known, places): known for known in self._templates}
        return index.get(_literals(template, places))


class TemplateSet:
    """The templates of one method. Adding costs a look-up per shape in use, not per template."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[int, int], dict[int, _ShapeNode]] = {}

    def add(self, template: Template) -> Template | None:
        """Add a template, or return an existing one that some path matches equally well."""
        alike = self._shapes.setdefault((len(template.segments), len(template.parameters)), {})
        literal = sum(1 << place for place, segment in enumerate(template.segments) if segment is not None)
        for other, shape in alike.items():
            # A parameter in either template matches anything; only shared literals can distinguish them.
            rival = shape.find(template, literal & other)
            if rival is not None:
                return rival
        alike.setdefault(literal, _ShapeNode()).add(template)
        return None


def _literals(template: Template, places: int) -> tuple[str | None, ...]:
    return tuple(segment for place, segment in enumerate(template.segments) if places >> place & 1)


# AGTP-API 3.2: uppercase ASCII single tokens matching ^[A-Z]+$, length 3 to 32 characters inclusive.
_METHOD = re.compile(r"[A-Z]{3,32}")


def is_method_name(method: str) -> bool:
    """Return True if the text is a syntactically valid method: 3 to 32 capital letters."""
    return _METHOD.fullmatch(method) is not None


_NO_SEGMENT: Final = ("", ".", "..")  # values that a path cannot carry as a segment: a server would read another path


def fill_path(path: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None] | Fault:
    """Replace each `{name}` of a path by that field of an input; return the path and the rest of the input, if any."""
    left = dict(given)
    for name in dict.fromkeys(_PARAMETER.findall(path)):
        value = left.pop(name, "")
        try:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            segment = quote(text, safe="")
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return Fault(f"The {name} is not JSON: {error}.")
        if text in _NO_SEGMENT:
            return Fault(f"The path {path} needs a value for {name!r}; got {text!r}.")
        path = path.replace(f"{{{name}}}", segment)
    return path, left or None
