"""Invariant: no text makes the JSON reader raise, places lie inside the text, and edits produce exactly the changed
data.

Run `python tools/fuzz/json_source.py --seconds 60`. It prints how many texts it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import random
import sys

from campaign import campaign
from source_tree import mutate, try_text

from bespeak.text.source.json_tree import parse_json

_TEXTS = [
    '{"agis": "1.0", "list": [1, -2.5e3, null, true, "x"], "deep": {"a": {"b": []}}}',
    '{\n  "a": [\n    1,\n    2\n  ],\n  "b": {\n    "c": "\\u00e9"\n  }\n}\n',
    "[]",
]
_PIECES = [
    *'[]{},:"\\\n\t 0-1e.a/#',
    *("NaN", "-Infinity", "1e999", "9" * 5000, "true", "null", '"a": 1,', "[" * 150, "\\ud800", "\\u0061", "\ud800"),
    *("\x00", "\ufeff", "\r\n", "é", "🐍", "//", '""'),
]


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutated text."""
    text = mutate(source.choice(_TEXTS), _PIECES, source)
    noted.append(text)
    try_text(text, parse_json, source, noted)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
