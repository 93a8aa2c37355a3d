"""Invariant: no text makes the YAML reader raise, places lie inside the text, and edits produce exactly the changed
data.

Run `python tools/fuzz/yaml_source.py --seconds 60`. It prints how many texts it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import random
import sys

from campaign import campaign
from source_tree import mutate, try_text

from bespeak.text.source.yaml_tree import parse_yaml

_TEXTS = [
    """\
# top
agis: "1.0"  # version
endpoints:
  - method: BOOK
    path: /room/{id}
    semantic: {intent: 'Books', is_idempotent: false, hints: [a, "b"]}
    errors:
    - gone

    # own line
    - full
  - method: FIND
    text: |
      one

      two
    folded: >+
      three

    empty:
""",
    "a: &x [1, {b: 2}]\nc: *x\n? d\n: e\n'f': [g: h, ? i : j, k]\n",
    "- - a\n  - b: 1\n    c: {\n      d: 1, # e\n      f: 2,\n    }\n-\n- []\n",
    "--- # doc\nkey: !!str 1\nother: !!map {}\n...\n",
]
_PIECES = [
    *"[]{},:-?#&*!|>%@`'\"\\\n\t ~<=0a",
    *(
        "\r\n",
        "\r",
        "- ",
        ": ",
        "? ",
        " #",
        "&a ",
        "*a",
        "*x",
        "!!int ",
        "!b ",
        "<<: *x",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
    ),
    *(
        "\ud800",
        "\x00",
        "\x85",
        "\u2028",
        "\ufeff",
        "é",
        "🐍",
        "9" * 5000,
        "1e999",
        "0x1F",
        "[" * 200,
        "- " * 200,
        "a" * 1100,
    ),
    *("%YAML 1.1\n", "- " * 200, "a" * 1100, "|\n", ">-\n  ", "\\ud800", "\\x41", "  ", "    "),
]


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutated text."""
    text = mutate(source.choice(_TEXTS), _PIECES, source)
    noted.append(text)
    try_text(text, parse_yaml, source, noted)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
