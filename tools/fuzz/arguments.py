"""Invariant: no instruction makes the search for arguments raise, and whatever it fills in is valid by the schema.

Run `python tools/fuzz/arguments.py --seconds 60`. It prints how many it tried, or the one that broke the invariant.
"""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime
from typing import Any

from campaign import campaign

from bespeak.agent.arguments.conversion import find_faults
from bespeak.agent.arguments.finding import find_arguments
from bespeak.contract.endpoint import Endpoint, Semantic

_SAID = """
from to Berlin Anna Miller on friday at 7pm for 4 people $5 not without open red dark blue : = is named the called of
and , . ' " 5% 3 kg two hours until between 10 20 EUR a@b.example A-12 2026-12-01 week check saying that
to-do İ ß \u0660 \x00 \ud800 name title guests city price is_open color when 1e99 99999999999999999999 one-way
"""
_WORDS = _SAID.split()
_NAMES = [
    "from", "to", "start_date", "end_date", "guests", "city", "name", "title", "price_cents", "is_open", "color",
    "when", "id", "rate", "a.b", "tags", "x",
]  # fmt: skip
_FORMATS: list[Any] = [
    {"type": "string", "format": name} for name in ("date", "date-time", "time", "duration", "email")
]
_KINDS: list[Any] = [
    *_FORMATS, {"type": "string"}, {"type": "integer"}, {"type": "number", "maximum": 1}, {"type": "boolean"}, {}, True,
    False, {"enum": ["red", "dark_blue", 5, None]}, {"type": "array", "items": {"type": "string"}},
    {"type": "array", "items": {"enum": ["red", "blue"]}, "maxItems": 1}, {"$ref": "#/$defs/n"}, {"$ref": "#/nowhere"},
    {"type": "string", "pattern": "^[A-Z]+-[0-9]+$"}, {"type": ["string", "null"], "maxLength": 5}, {"const": 1},
    {"type": "object", "properties": {"name": {"type": "string"}, "when": {"type": "string", "format": "date"}}},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": 5, "enum": 7},
]  # fmt: skip
_HINTS: list[Any] = ["for N people", "N of N", "named NAME", "(((N", "tomorrow", "", 7]


def trial(source: random.Random, noted: list[object]) -> None:
    """Try one instruction with one random schema."""
    fields = {name: source.choice(_KINDS) for name in source.sample(_NAMES, source.randrange(9))}
    schema = {
        "type": "object", "properties": fields, "required": source.sample(sorted(fields), len(fields) // 2),
        "$defs": {"n": {"type": "object", "properties": {"name": {"$ref": "#/$defs/n"}, "title": {"type": "string"}}}},
    }  # fmt: skip
    hints = {name: source.choice([source.choices(_HINTS, k=2), {"5": "five"}, "N x", None]) for name in fields}
    endpoint = Endpoint(
        method="FIND", path=source.choice(["/room", "/{id}", "/"]), description="Find rooms in a city.",
        semantic=Semantic(
            intent="", actor="", outcome="", confidence=0, impact="", is_idempotent=True, parameter_hints=hints
        ),
        input_schema=schema, output_schema={}, handler=None,  # type: ignore[arg-type]
    )  # fmt: skip
    text = " ".join(source.choice(_WORDS) for _ in range(source.randrange(30)))
    noted[:] = [text, schema, hints]
    result = find_arguments(text, endpoint, now=datetime(2026, 11, 19, tzinfo=UTC))
    faults = find_faults(endpoint, result.values)
    assert not faults or "" in faults, faults  # a schema that is itself not valid refuses nothing in particular
    for one in (*result.found, *result.offered):
        assert one.span is not None
        assert text[slice(*one.span)], one


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
