"""An endpoint as an MCP tool: names, texts, schemas and annotations from the contract (AGIS appendix C)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import McpTool
from bespeak.contract.mcp_content import carries_content, without_content
from bespeak.contract.mcp_server import McpServer
from bespeak.contract.schema.booleans import without_booleans
from bespeak.contract.schema.closing import closed
from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.schema.terse import terse
from bespeak.contract.schema.transplant import transplant
from bespeak.contract.tool_description import describe_tool
from bespeak.contract.tool_name import tool_names
from bespeak.protocol.fault import Fault
from bespeak.text.source.pointer import pointer

RESULT: Final = "result"
"""Member of the structured content that holds an output which is not an object: earlier revisions allow only those."""

PARTIAL: Final = "partial_result"
"""Member of the structured content that holds a part of an output, alone."""

_PLAIN: Final = frozenset(
    {"$schema", "$defs", "$comment", "additionalProperties", "description", "examples", "properties", "title", "type"}
)
"""Keywords of an object that no partial result can break."""

META: Final = "bespeak/"
"""Prefix of our members of `_meta`."""


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One endpoint that a client can call by name."""

    name: str
    endpoint: Endpoint
    entry: Mapping[str, Any]
    """Entry of tools/list."""
    input: Validator | None
    """Validator of the arguments, which refuses undeclared ones; None if the schema is not usable."""
    output: Validator | None
    """Validator of the structured content; None if no output schema is published."""
    wraps: bool
    """True if the output is the member `result` of the structured content."""
    blocks: bool = False
    """True if the output may have content blocks, which are not part of the structured content."""

    @property
    def is_irreversible(self) -> bool:
        """True if a call cannot be undone."""
        return self.endpoint.semantic.impact == "irreversible"


def make_tools(endpoints: Iterable[Endpoint]) -> dict[str, Tool]:
    """Make the tools of a service, by name, in the order of their names. Internal endpoints have none.

    Prompts and resources of an upstream are left out: clients of MCP get them as what they are.
    """
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed and offered_by(endpoint) is None]
    names = tool_names(listed)
    by_key = {endpoint.key: name for endpoint, name in zip(listed, names, strict=True)}
    tools = (_make_tool(name, endpoint, by_key) for endpoint, name in zip(listed, names, strict=True))
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}


def offered_by(endpoint: Endpoint) -> McpServer | None:
    """Return the server whose prompt or resource an endpoint only reads; None for another endpoint."""
    handler = endpoint.handler
    if not isinstance(handler, McpTool) or handler.mcp.tool or endpoint.semantic.impact != "informational":
        return None
    return handler.mcp


def _make_tool(name: str, endpoint: Endpoint, names: Mapping[tuple[str, str], str]) -> Tool:
    semantic = endpoint.semantic
    blocks = carries_content(endpoint)
    schema, wraps = _output_schema(without_content(endpoint.output_schema) if blocks else endpoint.output_schema)
    output = _compile(schema)
    entry: dict[str, Any] = {
        "name": name,
        "title": name.replace("_", " ").replace("-", " ").strip().capitalize() or name,
        "description": describe_tool(endpoint, names),
        "inputSchema": {"type": "object", **terse(without_booleans(endpoint.input_schema))},
        "annotations": {
            "readOnlyHint": semantic.impact == "informational",
            "destructiveHint": semantic.impact == "irreversible",
            "idempotentHint": semantic.is_idempotent,
            "openWorldHint": endpoint.handler.type == "external_service",
        },
        "_meta": _meta(endpoint),
    }
    if output is not None and schema is not None:
        entry["outputSchema"] = admit_partial(schema)
    return Tool(name, endpoint, entry, _compile(closed(endpoint.input_schema)), output, wraps, blocks)


def _meta(endpoint: Endpoint) -> dict[str, Any]:
    meta: dict[str, Any] = {f"{META}endpoint": str(endpoint), f"{META}impact": endpoint.semantic.impact}
    if endpoint.required_scopes:
        meta[f"{META}scopes"] = list(endpoint.required_scopes)
    if not endpoint.reviewed:
        meta[f"{META}reviewed"] = False
    if endpoint.deprecated is not None:
        meta[f"{META}deprecated"] = endpoint.deprecated.to_json()
    return meta


def _output_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """Return the published output schema, and whether the output is wrapped in an object.

    An output that says no more than `object` is not published: services on the web are described like that, whatever
    they send.
    """
    if not schema or dict(schema) == {"type": "object"}:
        return None, False
    schema = terse(without_booleans(schema))
    if schema.get("type") == "object":
        return schema, False
    inner = transplant(schema, lambda parts: "#" + pointer(("properties", RESULT, *parts)))
    return {"type": "object", "properties": {RESULT: inner}, "required": [RESULT]}, True


def admit_partial(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of results that may be partial: they have one member, which no whole output has to have."""
    published = dict(schema)
    required = published.pop("required", ())
    if published.get("additionalProperties") is True:
        del published["additionalProperties"]
    if _PLAIN.issuperset(published) and PARTIAL not in published.get("properties", {}):
        if "additionalProperties" in published:
            published["properties"] = {**published.get("properties", {}), PARTIAL: {"type": "object"}}
        if required:
            published["anyOf"] = [{"required": list(required)}, {"required": [PARTIAL]}]
        return published
    exact = transplant(schema, lambda parts: "#" + pointer(("anyOf", "0", *parts)))
    return {"type": "object", "anyOf": [exact, {"type": "object", "required": [PARTIAL]}]}


def _compile(schema: Mapping[str, Any] | None) -> Validator | None:
    found = None if schema is None else compile_schema(schema)
    return None if isinstance(found, Fault) else found
