"""X92x: the schemas of a contract are safe to process (AGIS 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from bespeak.checks.lint.context import Context
from bespeak.contract.schema.traps import TrapKind, traps
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared

_INPUT: Final = "method: BOOK\npath: /room\ninput:\n  type: object\n  properties:\n    code: "
_GOOD: Final = f"{_INPUT}{{type: string, pattern: '^[A-Z]+$'}}\n"
_CHOICE: Final = "anyOf: [{const: a}, {const: b}, {const: c}, {const: d}, {const: e}, {const: f}]"

SLOW_PATTERN: Final = Rule(
    ("X920", "slow-pattern", "SHOULD", "AGIS 13"),
    "A pattern can be matched without exponential time.",
    why="Most engines backtrack: with (a+)+ thirty letters keep an agent busy for minutes.",
    bad=f"{_INPUT}{{type: string, pattern: '^(a+)+$'}}\n",
    good=_GOOD,
)
BACKTRACKING: Final = Rule(
    ("X921", "pattern-needs-backtracking", "SHOULD", "AGIS 13"),
    "A pattern has no lookaround and no backreferences.",
    why="Linear-time engines refuse such patterns, so the schema does not work for all readers.",
    bad=f"{_INPUT}{{type: string, pattern: '^(?!admin)[a-z]+$'}}\n",
    good=_GOOD,
)
ALTERNATIVES: Final = Rule(
    ("X922", "schema-explodes", "SHOULD", "AGIS 13"),
    "Nested alternatives are few.",
    why="Each level multiplies the combinations that validators and models must consider.",
    bad=f"{_INPUT}\n      allOf:\n"
    + "".join(f"        - anyOf: [{{{_CHOICE}}}, {{{_CHOICE}}}, {{{_CHOICE}}}, {{{_CHOICE}}}]\n" for _ in range(3)),
    good=_GOOD,
)
OVERSIZED: Final = Rule(
    ("X923", "oversized-schema", "SHOULD", "AGIS 13"),
    "A schema has at most 2,000 parts and 20 levels, and a list of values at most 1,000 entries.",
    why="Models get the whole schema, and a large one crowds out everything else.",
    bad=f"{_INPUT}{{enum: [{', '.join(map(str, range(1001)))}]}}\n",
    good=_GOOD,
)
DYNAMIC: Final = Rule(
    ("X924", "moving-reference", "SHOULD", "AGIS 13"),
    "A schema does not change what its references mean: no $id inside, no $dynamicRef, no $recursiveRef.",
    why="Readers resolve them differently and validate different schemas.",
    bad=f"{_INPUT}{{$id: 'https://schemas.example/code', type: string}}\n",
    good=_GOOD,
)
CIRCLE: Final = Rule(
    ("X925", "circular-reference", "SHOULD", "AGIS 13"),
    "References do not form a cycle without descending into the data.",
    why="A reader that follows them never ends.",
    bad=f'{_INPUT}{{$ref: "#/$defs/a"}}\n  $defs:\n    a: {{$ref: "#/$defs/b"}}\n    b: {{$ref: "#/$defs/a"}}\n',
    good=_GOOD,
)

_SUSPECT: Final = (b'"pattern', b'Of"', b"$ref", b"$dynamic", b"$recursive", b"$id")
_LARGE: Final = 2_000
"""Size in bytes below which a schema without the words above is not examined."""
_BRACES: Final = 20
"""Number of opening braces from which a schema is examined."""

_RULES: Final[Mapping[TrapKind, Rule]] = {
    "slow-pattern": SLOW_PATTERN,
    "backtracking": BACKTRACKING,
    "alternatives": ALTERNATIVES,
    "oversized": OVERSIZED,
    "dynamic": DYNAMIC,
    "circle": CIRCLE,
}


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Check the schemas of one endpoint."""
    endpoint = declared.endpoint
    for name, schema in (("/input_schema", endpoint.input_schema), ("/output_schema", endpoint.output_schema)):
        try:
            text = msgspec.json.encode(schema)
        except (TypeError, ValueError, RecursionError):
            continue  # values that are not JSON are refused elsewhere
        if len(text) > _LARGE or text.count(b"{") > _BRACES or any(word in text for word in _SUSPECT):
            for trap in traps(schema):
                yield _RULES[trap.kind].at(endpoint, f"{name}{trap.at}", trap.message, trap.advice)
