"""S44x: parameter hints map user terms to existing parameters (AGIS 6.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from bespeak.checks.lint.context import Context
from bespeak.contract.schema.subschemas import COMPOSING
from bespeak.text.diagnostics.brief import brief, unquoted
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.reading.untyped import as_mapping
from bespeak.text.source.change import Change
from bespeak.text.source.pointer import child

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared

_BOOK: Final = "method: BOOK\npath: /room\nsemantic:\n  parameter_hints:\n"
_INPUT: Final = "input:\n  type: object\n  properties:\n    guests: {type: integer}\n"

UNKNOWN: Final = Rule(
    ("S440", "hint-for-unknown-parameter", "SHOULD", "AGIS 6.2"),
    "parameter_hints names parameters of the input.",
    why="A hint for a parameter that does not exist makes an agent send it, and a closed input refuses it.",
    bad=f"{_BOOK}    guest: [for two]\n{_INPUT}",
    good=f"{_BOOK}    guests: [for two]\n{_INPUT}",
    fix="unsafe",
)
EMPTY: Final = Rule(
    ("S441", "empty-hint", "style", "AGIS 6.2"),
    "A parameter in parameter_hints has at least one phrase, and no phrase is empty or repeated.",
    why="An empty list has no effect and may be an oversight.",
    bad=f"{_BOOK}    guests: []\n{_INPUT}",
    good=f"{_BOOK}    guests: [for two, party of four]\n{_INPUT}",
)

_ELSEWHERE: Final = COMPOSING | {"patternProperties"}
"""Keywords by which an input may have parameters besides its properties."""
_MOST: Final = 50


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Check the parameter hints of one endpoint."""
    hints = as_mapping(declared.semantic.get("parameter_hints"))
    schema = declared.endpoint.input_schema
    known = as_mapping(schema.get("properties"))
    judged = bool(known) and not (_ELSEWHERE & schema.keys())
    for name, phrases in list(hints.items())[:_MOST]:
        pointer = child("/semantic/parameter_hints", name)
        if judged and name not in known and f"{{{name}}}" not in declared.endpoint.path:
            yield _unknown(declared, name, pointer, known, hints)
        if isinstance(phrases, list):
            said = [phrase.strip().lower() for phrase in phrases[:_MOST] if isinstance(phrase, str)]
            if not phrases or "" in said or len(set(said)) < len(said):
                what = "has no phrase" if not phrases else "has an empty phrase" if "" in said else "repeats a phrase"
                message = f"the hint for {unquoted(name)} {what}"
                advice = "List phrases that users say, each once: [for two, party of four]."
                yield EMPTY.at(declared.endpoint, pointer, message, advice)


def _unknown(
    declared: Declared, name: str, pointer: str, known: Mapping[str, Any], hints: Mapping[str, Any]
) -> Diagnostic:
    message = f"parameter_hints names {brief(name)}, which is not a parameter of the input"
    near = get_close_matches(name[:40], [key for key in list(known)[:_MOST] if key not in hints], n=1)
    if not near:
        advice = f"The parameters are {', '.join(list(known)[:8])}."
        return UNKNOWN.at(declared.endpoint, pointer, message, advice, on_key=True)
    fix = Fix(f"Rename it to {near[0]}", (Change("rename", pointer, key=near[0]),), safe=False)
    return UNKNOWN.at(declared.endpoint, pointer, message, f"Did you mean {near[0]}?", fix, on_key=True)
