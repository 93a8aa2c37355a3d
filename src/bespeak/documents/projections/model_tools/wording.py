"""Keywords that a provider does not support, as sentences in the description."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bespeak.documents.projections.model_tools.document import ONE, SAYS, Definitions, Node, Pass
from bespeak.documents.projections.model_tools.overlap import are_disjoint
from bespeak.documents.projections.model_tools.sentences import sentence

Keeps = Callable[[str, Any], bool]
"""Decides whether a provider supports a keyword with a value."""

_WORDED: Final = (
    *("enum", "minLength", "maxLength", "pattern", "format", "contentEncoding", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties"),
    *("maxProperties", "default", "examples", "deprecated"),
)
_LONGEST: Final = 2_000
"""Maximum characters of a description inside a schema."""


def wording(keeps: Keeps) -> Pass:
    """Return the pass that puts keywords which are not kept, and other sentences, into descriptions."""

    def worded(node: Node, definitions: Definitions) -> Node:
        told = [key for key in _WORDED if key in node and not keeps(key, node[key])]
        said = list(node.get(SAYS, ()))
        if node.get(ONE) and not are_disjoint(node["anyOf"], definitions):
            said += sentence("oneOf", True)
        said += [text for key in told for text in sentence(key, node[key])]
        made = {key: value for key, value in node.items() if key not in told and key != SAYS}
        if not said:
            return made
        own = made.get("description", "").strip()
        if own and own[-1] not in ".!?:":
            own += "."
        return {**made, "description": " ".join(filter(None, [own, *dict.fromkeys(said)]))[:_LONGEST]}

    return worded
