"""Parsing of a text in any supported notation into a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bespeak.documents.rules import UNKNOWN_DOCUMENT
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.source.brace_tree import parse_braces
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.toml_tree import parse_toml
from bespeak.text.source.tree import Location, Notation, SyntaxFault, Tree, detect_notation
from bespeak.text.source.yaml_tree import parse_yaml

NAMES: Final[dict[Notation, str]] = {"yaml": "YAML", "json": "JSON", "toml": "TOML", "braces": "AGIS's brace notation"}

_PARSERS: Final[dict[Notation, Callable[[str, str], Tree | SyntaxFault]]] = {
    "yaml": parse_yaml,
    "json": parse_json,
    "toml": parse_toml,
    "braces": parse_braces,
}


def parse_notation(text: str, file: str) -> Tree | Diagnostic:
    """Parse a text into a tree, or return a diagnostic. TOML is recognised by its file name, others by content."""
    if file.endswith(".py"):
        advice = "`bespeak lint` takes the file or module:app and imports it; a text from elsewhere is not run."
        return UNKNOWN_DOCUMENT.found("this is Python, not a document", Location(file), advice=advice)
    notation: Notation = "toml" if file.endswith(".toml") else detect_notation(text)
    if notation == "braces":
        # A text block of YAML may look like braces; brace notation is never a mapping of YAML.
        plain = parse_yaml(text, file)
        if not isinstance(plain, SyntaxFault) and isinstance(plain.data, dict):
            return plain
    tree = _PARSERS[notation](text, file)
    if isinstance(tree, SyntaxFault):
        return MALFORMED.found(f"this is not {NAMES[notation]}: {tree.message}", tree.location, advice=tree.help)
    return tree
