"""Schemas that are unsafe or expensive to use: slow patterns, too many alternatives, circular references (AGIS 13).

Matching is exponential if repetitions can be divided in many ways, `(a+)+`, or alternatives match the same text,
`(a|aa)*`. Both are found by comparing the sets of characters that the parts can match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from bespeak.contract.schema.subschemas import nodes
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import pointer

_LONGEST: Final = 1_000
_MANY: Final = 20  # number of repetitions from which a bound counts as unlimited
_BACKTRACKING: Final = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]|\\k<")
_ALL: Final = (1 << 129) - 1  # set of all characters: ASCII, and one bit for all others
_OTHERS: Final = 1 << 128


def _mask(chars: str) -> int:
    bits = 0
    for char in chars:
        bits |= 1 << min(ord(char), 128)
    return bits


_DIGITS: Final = _mask("0123456789")
_WORD: Final = _DIGITS | _mask("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_SPACE: Final = _mask(" \t\n\r\f\v")
_CLASSES: Final = {"d": _DIGITS, "D": _ALL & ~_DIGITS, "w": _WORD, "W": _ALL & ~_WORD, "s": _SPACE, "S": _ALL & ~_SPACE}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


@dataclass(slots=True)
class _PatternPart:
    """A repeatable piece of a pattern: a set of characters, or a group of alternatives."""

    chars: int = 0
    choices: list[list[_PatternPart]] = field(default_factory=list)
    optional: bool = False
    endless: bool = False


def needs_backtracking(pattern: str) -> bool:
    """Return True if a pattern has look-around or back-references: no linear-time engine accepts it."""
    return _BACKTRACKING.search(pattern[:_LONGEST]) is not None


@lru_cache(maxsize=1024)
def slowness(pattern: str) -> str | None:
    """Return why matching a pattern can take unbounded time, or None."""
    if len(pattern) > _LONGEST:
        return f"it is longer than {_LONGEST} characters"
    if "(" not in pattern:
        return None
    try:
        choices = _PatternReader(pattern).choices(0)
    except (_UnreadablePattern, IndexError):
        return None  # validity is checked elsewhere
    return next(_reasons(choices), None)


def _reasons(choices: list[list[_PatternPart]]) -> Iterator[str]:
    for sequence in choices:
        for part in sequence:
            if part.endless and part.choices:
                if any(_can_drift(inner) for inner in part.choices):
                    yield "a repetition is repeated, and its parts can be divided in many ways"
                if _overlap(part.choices):
                    yield "a choice is repeated, and its alternatives match the same text"
            yield from _reasons(part.choices)


def _can_drift(sequence: list[_PatternPart]) -> bool:
    """Return True if the end of one repetition can also be the start of the next."""
    parts = _flat(sequence)
    return any(
        part.endless
        and part.chars
        and all(other is part or other.optional or other.chars & part.chars for other in parts)
        for part in parts
    )


def _overlap(choices: list[list[_PatternPart]]) -> bool:
    """Return True if one of two alternatives matches a prefix of what the other matches."""
    plain = [_flat(sequence) for sequence in choices[:_MANY]]
    for number, left in enumerate(plain):
        for right in plain[:number]:
            pairs = list(zip(left, right, strict=False))
            if pairs and all(one.chars & other.chars for one, other in pairs):
                return True
    return False


def _flat(sequence: list[_PatternPart]) -> list[_PatternPart]:
    """Flatten the groups of a sequence that have neither alternatives nor repetition."""
    flat: list[_PatternPart] = []
    for part in sequence:
        if len(part.choices) == 1 and not part.optional and not part.endless:
            flat += _flat(part.choices[0])
        elif part.chars:
            flat.append(part)
    return flat


class _UnreadablePattern(Exception):
    """The pattern is not valid, or uses syntax this reader does not support."""


class _PatternReader:
    """A pattern, read from left to right."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0

    def choices(self, depth: int) -> list[list[_PatternPart]]:
        if depth > 40:
            raise _UnreadablePattern
        choices: list[list[_PatternPart]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                choices.append([])
                continue
            part = self._part(depth)
            self._repeat(part)
            choices[-1].append(part)
        return choices

    def _part(self, depth: int) -> _PatternPart:
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            return self._group(depth)
        if char == "[":
            return _PatternPart(self._set())
        if char == ".":
            return _PatternPart(_ALL & ~_mask("\n"))
        if char == "\\":
            return _PatternPart(self._escape())
        return _PatternPart(0 if char in "^$" else _mask(char))

    def _group(self, depth: int) -> _PatternPart:
        looks = False
        if self.text.startswith("?", self.at):
            looks = self.text.startswith(("?=", "?!", "?<=", "?<!"), self.at)
            if self.text.startswith(("?<=", "?<!"), self.at):
                self.at += 3
            elif self.text.startswith(("?<", "?P<"), self.at):
                self.at = self.text.index(">", self.at) + 1 if ">" in self.text[self.at :] else len(self.text)
            else:
                self.at += 2
        choices = self.choices(depth + 1)
        if self.at >= len(self.text):
            raise _UnreadablePattern
        self.at += 1
        if looks:
            return _PatternPart(0, choices)
        chars = 0
        for sequence in choices:
            for part in sequence:
                chars |= part.chars
        optional = any(all(part.optional or not part.chars for part in sequence) for sequence in choices)
        return _PatternPart(chars, choices, optional)

    def _repeat(self, part: _PatternPart) -> None:
        sign = self.text[self.at : self.at + 1]
        if sign in {"*", "+", "?"}:
            self.at += 1
            part.optional = part.optional or sign != "+"
            part.endless = sign != "?"
        elif sign == "{":
            match = _COUNT.match(self.text, self.at)
            if match is None:
                return
            self.at = match.end()
            part.optional = part.optional or int(match[1]) == 0
            most = match[1] if match[2] is None else match[3]
            part.endless = not most or int(most) >= _MANY
        else:
            return
        if self.text.startswith(("?", "+"), self.at):
            self.at += 1

    def _escape(self) -> int:
        char = self.text[self.at]
        self.at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if char in "bB":
            return 0
        if char in "pP":
            self.at = self.text.index("}", self.at) + 1 if "}" in self.text[self.at :] else self.at
            return _ALL
        if char in "xu":
            digits = self.text[self.at : self.at + (2 if char == "x" else 4)]
            self.at += len(digits)
            try:
                return 1 << min(int(digits, 16), 128)
            except ValueError:
                raise _UnreadablePattern from None
        return _ALL if char.isdigit() and char != "0" else _mask(_CONTROLS.get(char, char))

    def _set(self) -> int:
        negated = self.text[self.at] == "^"
        self.at += negated
        chars = 0
        first = True
        while first or self.text[self.at] != "]":
            first = False
            low = self._member()
            if self.text[self.at] == "-" and self.text[self.at + 1] != "]" and low.bit_count() == 1:
                self.at += 1
                for bit in range(low.bit_length() - 1, self._member().bit_length()):
                    chars |= 1 << bit
            else:
                chars |= low
        self.at += 1
        return (_ALL & ~chars) | _OTHERS if negated else chars

    def _member(self) -> int:
        char = self.text[self.at]
        self.at += 1
        return self._escape() if char == "\\" else _mask(char)


_COUNT: Final = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}")
HazardKind = Literal["slow-pattern", "backtracking", "alternatives", "oversized", "dynamic", "circle"]
_MOST_PARTS: Final = 2_000
_DEEPEST_TRAP: Final = 20
_MOST_VALUES: Final = 1_000
_MOST_WAYS: Final = 1_000


class Hazard(NamedTuple):
    """One unsafe or expensive part of a schema."""

    kind: HazardKind
    at: str  # JSON Pointer into the schema
    message: str
    advice: str


def find_hazards(schema: Mapping[str, Any]) -> Iterator[Hazard]:
    """Yield what makes a schema unsafe or expensive to use."""
    for parts, (at, node) in enumerate(nodes(dict(schema)), 1):
        if parts > _MOST_PARTS or len(at) > 2 * _DEEPEST_TRAP:
            what = f"more than {_MOST_PARTS} parts" if parts > _MOST_PARTS else f"more than {2 * _DEEPEST_TRAP} levels"
            yield Hazard("oversized", "", f"the schema has {what}", "Ask for less at once, or split the endpoint.")
            return
        yield from _check_patterns(at, node)
        values = node.get("enum")
        if isinstance(values, list) and len(values) > _MOST_VALUES:
            message = f"the list has {len(values)} values, more than {_MOST_VALUES}"
            advice = "Describe the values by a pattern, or let agents look them up."
            yield Hazard("oversized", pointer((*at, "enum")), message, advice)
        for keyword in ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"):
            if keyword in node:
                message = f"{keyword} makes the meaning of references depend on the reader"
                yield Hazard("dynamic", pointer((*at, keyword)), message, "Use $ref and $defs.")
        if at and isinstance(node.get("$id"), str):
            message = f"$id moves the references below it to {brief(node['$id'])}"
            yield Hazard("dynamic", pointer((*at, "$id")), message, "Remove $id, and refer with $ref: '#/...'.")
    if _ways(schema, {}) > _MOST_WAYS:
        message = f"the schema can be satisfied in more than {_MOST_WAYS} ways"
        yield Hazard("alternatives", "", message, "Use fewer alternatives, or an endpoint for each.")
    yield from _check_circles(schema)


def _check_patterns(at: tuple[str | int, ...], node: Mapping[str, Any]) -> Iterator[Hazard]:
    patterns: list[tuple[object, tuple[str | int, ...]]] = []
    if "pattern" in node:
        patterns.append((node["pattern"], (*at, "pattern")))
    named = node.get("patternProperties")
    if isinstance(named, dict):
        patterns += [(name, (*at, "patternProperties", name)) for name in named]
    for pattern, place in patterns:
        if not isinstance(pattern, str):
            continue
        slow = slowness(pattern)
        if slow is not None:
            message = f"the pattern {brief(pattern)} can take unbounded time: {slow}"
            yield Hazard("slow-pattern", pointer(place), message, "Write it without a repetition inside a repetition.")
        elif needs_backtracking(pattern):
            message = f"the pattern {brief(pattern)} uses look-around or back-references, which many engines refuse"
            yield Hazard("backtracking", pointer(place), message, "Describe what is allowed; use `not` for the rest.")


def _ways(node: object, known: dict[int, int]) -> int:
    """Count the combinations of a schema's alternatives up to a limit. The depth is limited before."""
    if not isinstance(node, dict):
        return 1
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = 1
    ways = apart = 1
    for key, value in node.items():
        if key in ("anyOf", "oneOf") and isinstance(value, list):
            ways *= max(1, sum(_ways(part, known) for part in value))
        elif key == "allOf" and isinstance(value, list):
            for part in value:
                ways *= _ways(part, known)
                if ways > _MOST_WAYS:
                    break
        elif key in ("items", "not", "if", "then", "else", "additionalProperties", "contains"):
            ways *= _ways(value, known)
        elif key in ("properties", "$defs") and isinstance(value, dict):
            apart = max((apart, *(_ways(part, known) for part in value.values())))
        if ways > _MOST_WAYS:
            break
    ways = min(max(ways, apart), _MOST_WAYS + 1)
    known[id(node)] = ways
    return ways


def _check_circles(schema: Mapping[str, Any]) -> Iterator[Hazard]:
    """Yield references that form a cycle of references and combinations only."""
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        definitions = {}
    edges = {f"#/$defs/{name}": _direct(part) for name, part in definitions.items()}
    edges["#"] = _direct(schema)
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        here: str | None = start
        waiting: list[tuple[str, int]] = [(start, 0)]
        on_path: set[str] = set()
        while waiting:
            here, depth = waiting.pop()
            while len(path) > depth:
                on_path.discard(path.pop())
            if here in on_path:
                message = f"{' -> '.join([*path[path.index(here) :], here][:6])} is circular"
                yield Hazard("circle", "", message, "Put a property or an item between them.")
                return
            if here in done:
                continue
            done.add(here)
            path.append(here)
            on_path.add(here)
            waiting += [(target, depth + 1) for target in edges.get(here, ())]


def _direct(node: object) -> list[str]:
    """Return the references of a schema that apply to the same value."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                found.append(part["$ref"])
            for keyword in ("allOf", "anyOf", "oneOf"):
                if isinstance(part.get(keyword), list):
                    waiting += part[keyword]
    return found
