"""Schemas that are unsafe or expensive to use: slow patterns, too many alternatives, circular references (AGIS 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from bespeak.contract.schema.pattern import needs_backtracking, slowness
from bespeak.contract.schema.subschemas import nodes
from bespeak.text.diagnostics.brief import brief
from bespeak.text.source.pointer import pointer

TrapKind = Literal["slow-pattern", "backtracking", "alternatives", "oversized", "dynamic", "circle"]

_MOST_PARTS: Final = 2_000
_DEEPEST: Final = 20
_MOST_VALUES: Final = 1_000
_MOST_WAYS: Final = 1_000
_MOVING: Final = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor")
_CHOICES: Final = ("anyOf", "oneOf")
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")


class Trap(NamedTuple):
    """One unsafe or expensive part of a schema."""

    kind: TrapKind
    at: str
    """JSON Pointer into the schema."""
    message: str
    advice: str


def traps(schema: Mapping[str, Any]) -> Iterator[Trap]:
    """Yield what makes a schema unsafe or expensive to use."""
    for parts, (at, node) in enumerate(nodes(dict(schema)), 1):
        if parts > _MOST_PARTS or len(at) > 2 * _DEEPEST:
            what = f"more than {_MOST_PARTS} parts" if parts > _MOST_PARTS else f"more than {2 * _DEEPEST} levels"
            yield Trap("oversized", "", f"the schema has {what}", "Ask for less at once, or split the endpoint.")
            return
        yield from _check_patterns(at, node)
        values = node.get("enum")
        if isinstance(values, list) and len(values) > _MOST_VALUES:
            message = f"the list has {len(values)} values, more than {_MOST_VALUES}"
            advice = "Describe the values by a pattern, or let agents look them up."
            yield Trap("oversized", pointer((*at, "enum")), message, advice)
        for keyword in _MOVING:
            if keyword in node:
                message = f"{keyword} makes the meaning of references depend on the reader"
                yield Trap("dynamic", pointer((*at, keyword)), message, "Use $ref and $defs.")
        if at and isinstance(node.get("$id"), str):
            message = f"$id moves the references below it to {brief(node['$id'])}"
            yield Trap("dynamic", pointer((*at, "$id")), message, "Remove $id, and refer with $ref: '#/...'.")
    ways = _ways(schema, {})
    if ways > _MOST_WAYS:
        message = f"the schema can be satisfied in more than {_MOST_WAYS} ways"
        yield Trap("alternatives", "", message, "Use fewer alternatives, or an endpoint for each.")
    yield from _check_circles(schema)


def _check_patterns(at: tuple[str | int, ...], node: Mapping[str, Any]) -> Iterator[Trap]:
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
            yield Trap("slow-pattern", pointer(place), message, "Write it without a repetition inside a repetition.")
        elif needs_backtracking(pattern):
            message = f"the pattern {brief(pattern)} uses look-around or back-references, which many engines refuse"
            yield Trap("backtracking", pointer(place), message, "Describe what is allowed; use `not` for the rest.")


def _ways(node: object, known: dict[int, int]) -> int:
    """Count the combinations of a schema's alternatives up to a limit. The depth is limited before."""
    if not isinstance(node, dict):
        return 1
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = 1
    ways = apart = 1
    for key, value in node.items():
        if key in _CHOICES and isinstance(value, list):
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


def _check_circles(schema: Mapping[str, Any]) -> Iterator[Trap]:
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
                yield Trap("circle", "", message, "Put a property or an item between them.")
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
            for keyword in _IN_PLACE:
                if isinstance(part.get(keyword), list):
                    waiting += part[keyword]
    return found
