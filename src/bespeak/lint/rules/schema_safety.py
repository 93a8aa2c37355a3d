"""X92x: no schema of a contract is a trap for those who use it (AGIS 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.diagnostics.brief import brief
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.lint.context import Context
from bespeak.lint.pattern import needs_backtracking, slowness
from bespeak.lint.rule import Rule
from bespeak.schema.compile import nodes
from bespeak.source.pointer import pointer

if TYPE_CHECKING:
    from bespeak.lint.subject import Declared

_INPUT: Final = "method: BOOK\npath: /room\ninput:\n  type: object\n  properties:\n    code: "
_GOOD: Final = f"{_INPUT}{{type: string, pattern: '^[A-Z]+$'}}\n"
_CHOICE: Final = "anyOf: [{const: a}, {const: b}, {const: c}, {const: d}, {const: e}, {const: f}]"

SLOW_PATTERN: Final = Rule(
    "X920",
    "slow-pattern",
    "SHOULD",
    "AGIS 13",
    "A pattern can be matched in time that grows with the text, not in powers of two.",
    why="Most engines backtrack: with (a+)+ thirty letters keep an agent busy for minutes.",
    bad=f"{_INPUT}{{type: string, pattern: '^(a+)+$'}}\n",
    good=_GOOD,
)
BACKTRACKING: Final = Rule(
    "X921",
    "pattern-needs-backtracking",
    "SHOULD",
    "AGIS 13",
    "A pattern neither looks around nor refers back.",
    why="Engines that keep a bound on their time refuse such patterns, so that the schema works for some readers only.",
    bad=f"{_INPUT}{{type: string, pattern: '^(?!admin)[a-z]+$'}}\n",
    good=_GOOD,
)
ALTERNATIVES: Final = Rule(
    "X922",
    "schema-explodes",
    "SHOULD",
    "AGIS 13",
    "Alternatives inside alternatives stay few.",
    why="Each level multiplies the ways a validator has to try, and what a model has to keep in mind.",
    bad=f"{_INPUT}\n      allOf:\n"
    + "".join(f"        - anyOf: [{{{_CHOICE}}}, {{{_CHOICE}}}, {{{_CHOICE}}}, {{{_CHOICE}}}]\n" for _ in range(3)),
    good=_GOOD,
)
OVERSIZED: Final = Rule(
    "X923",
    "oversized-schema",
    "SHOULD",
    "AGIS 13",
    "A schema has at most 2,000 parts and 20 levels, and a list of values at most 1,000 entries.",
    why="It is put before models whole: a schema nobody can read crowds out everything else.",
    bad=f"{_INPUT}{{enum: [{', '.join(map(str, range(1001)))}]}}\n",
    good=_GOOD,
)
DYNAMIC: Final = Rule(
    "X924",
    "moving-reference",
    "SHOULD",
    "AGIS 13",
    "A schema does not change what its references mean: no $id inside, no $dynamicRef, no $recursiveRef.",
    why="Readers resolve them differently, so that one checks another schema than the other.",
    bad=f"{_INPUT}{{$id: 'https://schemas.example/code', type: string}}\n",
    good=_GOOD,
)
CIRCLE: Final = Rule(
    "X925",
    "circular-reference",
    "SHOULD",
    "AGIS 13",
    "References do not lead in a circle without going down into the data.",
    why="A reader that follows them never arrives.",
    bad=f'{_INPUT}{{$ref: "#/$defs/a"}}\n  $defs:\n    a: {{$ref: "#/$defs/b"}}\n    b: {{$ref: "#/$defs/a"}}\n',
    good=_GOOD,
)

RULES: Final = (SLOW_PATTERN, BACKTRACKING, ALTERNATIVES, OVERSIZED, DYNAMIC, CIRCLE)

_SUSPECT: Final = (b'"pattern', b'Of"', b"$ref", b"$dynamic", b"$recursive", b"$id")
_LARGE: Final = 2_000
"""A schema with fewer bytes, and none of the words above, needs no closer look."""
_MOST_PARTS: Final = 2_000
_DEEPEST: Final = 20
_MOST_VALUES: Final = 1_000
_MOST_WAYS: Final = 1_000
_MOVING: Final = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor")
_CHOICES: Final = ("anyOf", "oneOf")
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Findings about the schemas of one endpoint."""
    endpoint = declared.endpoint
    for name, schema in (("/input_schema", endpoint.input_schema), ("/output_schema", endpoint.output_schema)):
        try:
            text = msgspec.json.encode(schema)
        except (TypeError, ValueError, RecursionError):
            continue  # what is not JSON is refused elsewhere
        if len(text) > _LARGE or text.count(b"{") > _DEEPEST or any(word in text for word in _SUSPECT):
            for rule, at, message, advice in traps(schema):
                yield rule.at(endpoint, f"{name}{at}", message, advice)


_Found = tuple[Rule, str, str, str]


def traps(schema: Mapping[str, Any]) -> Iterator[_Found]:
    """What is wrong with a schema: the rule, the place in it, what to say and what to do."""
    for parts, (at, node) in enumerate(nodes(dict(schema)), 1):
        if parts > _MOST_PARTS or len(at) > 2 * _DEEPEST:
            what = f"more than {_MOST_PARTS} parts" if parts > _MOST_PARTS else f"more than {2 * _DEEPEST} levels"
            yield OVERSIZED, "", f"the schema has {what}", "Ask for less at once, or split the endpoint."
            return
        yield from _check_patterns(at, node)
        values = node.get("enum")
        if isinstance(values, list) and len(values) > _MOST_VALUES:
            message = f"the list has {len(values)} values, more than {_MOST_VALUES}"
            advice = "Describe the values by a pattern, or let agents look them up."
            yield OVERSIZED, pointer((*at, "enum")), message, advice
        for keyword in _MOVING:
            if keyword in node:
                message = f"{keyword} makes the meaning of references depend on the reader"
                yield DYNAMIC, pointer((*at, keyword)), message, "Use $ref and $defs."
        if at and isinstance(node.get("$id"), str):
            message = f"$id moves the references below it to {brief(node['$id'])}"
            yield DYNAMIC, pointer((*at, "$id")), message, "Remove $id, and refer with $ref: '#/...'."
    ways = _ways(schema, {})
    if ways > _MOST_WAYS:
        message = f"the schema can be met in more than {_MOST_WAYS} ways"
        yield ALTERNATIVES, "", message, "Use fewer alternatives, or an endpoint for each."
    yield from _check_circles(schema)


def _check_patterns(at: tuple[str | int, ...], node: Mapping[str, Any]) -> Iterator[_Found]:
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
            message = f"the pattern {brief(pattern)} can take for ever: {slow}"
            yield SLOW_PATTERN, pointer(place), message, "Write it without a repetition inside a repetition."
        elif needs_backtracking(pattern):
            message = f"the pattern {brief(pattern)} looks around or back, which many engines refuse"
            yield BACKTRACKING, pointer(place), message, "Say what is allowed; use `not` for what is not."


def _ways(node: object, known: dict[int, int]) -> int:
    """In how many ways the alternatives of a schema can be combined, counted up to a bound. Depth is bounded before."""
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


def _check_circles(schema: Mapping[str, Any]) -> Iterator[_Found]:
    """References that come back to where they started, through nothing but references and combinations."""
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
                message = f"{' -> '.join([*path[path.index(here) :], here][:6])} leads in a circle"
                yield CIRCLE, "", message, "Let one of them go down into a property or an item."
                return
            if here in done:
                continue
            done.add(here)
            path.append(here)
            on_path.add(here)
            waiting += [(target, depth + 1) for target in edges.get(here, ())]


def _direct(node: object) -> list[str]:
    """Where a schema refers to without going down into the data."""
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
