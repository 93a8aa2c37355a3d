"""The tools of an MCP server, as it lists them, and their schemas as an endpoint can have them.

Every field is the server's claim, not a fact. Schemas stay as they are (AGIS C.3(c)), unless they cannot be served
or written to a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.mcp_tool import CONTENT, SCHEMA
from bespeak.contract.schema.subschemas import closing_keyword, is_closed
from bespeak.documents.adoption.sanitizer import SchemaFitter, bound


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    hints: Mapping[str, bool] = field(default_factory=dict)
    """Annotations that are given: readOnlyHint, destructiveHint, idempotentHint, openWorldHint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One prompt or resource, as the server lists it. Every field is the server's claim, not a fact."""

    kind: str  # `prompt` or `resource`
    name: str
    uri: str = ""
    title: str = ""
    description: str = ""
    arguments: tuple[tuple[str, str, bool], ...] = ()  # Of a prompt: name, description, whether it is required.

    @property
    def key(self) -> str:
        """Name by which the server is asked for it."""
        return self.uri if self.kind == "resource" else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    tools: tuple[ListedTool, ...]
    title: str = ""
    version: str = ""
    instructions: str = ""  # what the server tells models about itself
    source: str = ""  # command line or address, as the user gave it
    offers: tuple[Offer, ...] = ()  # prompts and resources


_TUPLE: Final = "items"
_CLOSING: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_OPEN: Final = {"type": "object"}
_RESULT: Final = "result"  # field for an output that is not an object, as MCP servers themselves name it


def fit_input(schema: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the input schema of a tool, and what had to be left out of it."""
    fitted, lost = _fit({"type": "object", **schema})
    if fitted.get("type") != "object":
        fitted, lost = dict(_OPEN), (*lost, "a schema that does not describe an object")
    if is_closed(fitted):
        return fitted, lost
    # AGTP-API 6.3: an input is closed. It goes before AGIS C.3(c), which takes the schema as it is.
    if fitted.pop("additionalProperties", None) not in (None, False):
        lost = (*lost, "the fields that the tool takes without declaring them")
    return {**fitted, closing_keyword(fitted): False}, lost


def fit_output(schema: Mapping[str, Any] | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the output schema of a tool; any object if it declares none. What is not an object becomes a field.

    Without a schema, the output may be content blocks. AGIS C.3(c) takes a declared schema as it is.
    """
    if not schema:
        return {**_OPEN, "properties": {CONTENT: dict(SCHEMA)}}, ()
    fitted, lost = _fit(schema)
    if fitted.get("type") == "object":
        # AGTP-API 13.3: an output may have further fields. A refusal after the tool has run would come too late.
        return {key: value for key, value in fitted.items() if key not in _CLOSING or value is not False}, lost
    definitions: dict[str, Any] = {key: fitted.pop(key) for key in ("$defs", "definitions") if key in fitted}
    return {"type": "object", "properties": {_RESULT: fitted}, "required": [_RESULT], **definitions}, lost


def _fit(schema: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    clean, lost = SchemaFitter(verbatim=True).clean(_modern(schema, 0))
    usable, more = bound(dict(clean))
    return usable, tuple(dict.fromkeys((*lost, *more)))


def _modern(node: Any, depth: int) -> Any:
    """Write tuples as the 2020-12 dialect does: many servers still send draft 7."""
    if depth > 80:
        return node
    if isinstance(node, list):
        return [_modern(part, depth + 1) for part in node]
    if not isinstance(node, Mapping):
        return node
    found = {key: _modern(value, depth + 1) for key, value in node.items()}
    if isinstance(found.get(_TUPLE), list):
        found["prefixItems"] = found.pop(_TUPLE)
        if "additionalItems" in found:
            found[_TUPLE] = found.pop("additionalItems")
    return found
