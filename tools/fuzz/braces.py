"""Invariant: no text makes the reader of brace notation raise, places lie inside the text, and edits change one value.

Run `python tools/fuzz/braces.py --seconds 60`. It prints how many texts it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from campaign import campaign
from source_tree import mutate, try_text

from bespeak.text.source.brace_tree import parse_braces
from bespeak.text.source.tree import detect_notation

_DRAFT = Path(__file__).parents[2] / "tests" / "text" / "source" / "draft"
_TEXTS = [path.read_text("utf-8") for path in sorted(_DRAFT.glob("*.agis"))]
_PIECES = [
    *"{}[](),:#'\"\\\n\t .-a1/",
    *(
        "\r\n",
        "- ",
        ": ",
        "...",
        "->",
        "BOOK /x {",
        "semantic {",
        "output {",
        "errors {",
        "required: [",
        "a (int, minimum: 1)",
    ),
    *("\ud800", "\x00", "\ufeff", "é", "🐍", "9" * 5000, "1e999", "{" * 120, "[" * 120, "a {" * 120, "a:\n"),
]


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutation of an example of the draft."""
    text = mutate(source.choice(_TEXTS), _PIECES, source)
    noted.append(text)
    assert detect_notation(text) in {"json", "yaml", "braces"}
    try_text(text, parse_braces, source, noted)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
