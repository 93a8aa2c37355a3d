"""Invariant: no text makes a TOML reader raise, and each text is read exactly as tomli reads it, with places inside it.

Run `python tools/fuzz/toml.py --seconds 60`. It prints how many texts it tried, or the one that broke the invariant.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import tomli
from campaign import campaign

from bespeak.documents.deployment.endpoint_toml import endpoint_of, recipes_of
from bespeak.documents.deployment.server_toml import parse_server
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors
from bespeak.text.diagnostics.reporters.text import full
from bespeak.text.reading.text_file import toml_table
from bespeak.text.source.toml_tree import TomlTree, parse_toml
from bespeak.text.source.tree import SyntaxFault

_SEEDS = Path(__file__).parents[2] / "tests" / "documents" / "reference_deployment"
_PIECES = [
    *("[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\n", "\r\n", "\r", "#", '"', "'", '"""', "'''", "\\", "\\u0041"),
    *("\ud800", "\x00", "\x7f", "\t", " ", "é", "🐍", "true", "nan", "-inf", "0x" + "f" * 5000, "9" * 5000, "1e400"),
    *("2026-01-01", "12:00:00", "2026-01-01T00:00:00Z", "[endpoint]", "[[recipe]]", "a.b.c", "{a = 1}", "[[1], []]"),
    *(
        "[" * 300,
        "a." * 70,
        "type",
        "name",
        "list",
        "errors = 3",
        "[endpoint.handler]",
        "input_schema = {}",
        "steps = []",
    ),
]


def mutate(text: str, source: random.Random) -> str:
    """Mutate a text: insert, delete, repeat or move fragments."""
    for _ in range(source.randrange(1, 6)):
        at = source.randrange(len(text) + 1)
        end = min(len(text), at + source.randrange(40))
        choice = source.random()
        if choice < 0.4:
            text = text[:at] + source.choice(_PIECES) + text[at:]
        elif choice < 0.6:
            text = text[:at] + text[end:]
        elif choice < 0.8:
            text = text[:at] + source.choice(_PIECES) + text[end:]
        else:
            lines = text.split("\n")
            lines.insert(source.randrange(len(lines) + 1), source.choice(lines))
            text = "\n".join(lines)
    return text


def same(one: object, other: object) -> bool:
    """Return True if two values have equal content, types and order; nan equals itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else one == other


def try_text(text: str) -> None:
    """Check one text."""
    tree = parse_toml(text, "fuzz.toml")
    try:
        expected = tomli.loads(text)
    except (ValueError, RecursionError):
        assert isinstance(tree, SyntaxFault)
    else:
        # Longer keys than anybody writes are refused, because tomli takes too long for them.
        assert same(tree.data, expected) if isinstance(tree, TomlTree) else "parts" in tree.message
    root = toml_table(text, "fuzz.toml")
    endpoint, findings = (None, [root]) if isinstance(root, Diagnostic) else endpoint_of(root, "fuzz.toml")
    assert (endpoint is None) == has_errors(findings)
    root = toml_table(text, "fuzz.toml")  # a table is read once: what is not asked for is reported
    recipes, more = ((), [root]) if isinstance(root, Diagnostic) else recipes_of(root, "fuzz.toml")
    assert not (recipes and has_errors(more))
    _, rest = parse_server(text, "fuzz.toml")
    lines = text.replace("\r\n", "\n").count("\n") + 1
    for finding in (*findings, *more, *rest):
        assert finding.location is not None
        assert finding.location.line <= lines
    full([*findings, *more, *rest], lambda _: text)


_TEXTS = [path.read_text() for path in sorted(_SEEDS.rglob("*.toml"))]


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutated text."""
    text = mutate(source.choice(_TEXTS), source)
    noted.append(text)
    try_text(text)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
