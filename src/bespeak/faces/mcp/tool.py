"""An endpoint as an MCP tool: names, texts, schemas and annotations from the contract (AGIS appendix C)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.contract.deprecation import Deprecation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.closing import closing_keyword
from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.schema.transplant import transplant
from bespeak.contract.tool_name import tool_names
from bespeak.protocol.fault import Fault
from bespeak.text.source.pointer import pointer

RESULT: Final = "result"
"""Member of the structured content that holds an output which is not an object: earlier revisions allow only those."""

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

    @property
    def is_irreversible(self) -> bool:
        """True if a call cannot be undone."""
        return self.endpoint.semantic.impact == "irreversible"


def make_tools(endpoints: Iterable[Endpoint]) -> dict[str, Tool]:
    """Make the tools of a service, by name, in the order of their names. Internal endpoints have none."""
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    names = tool_names(listed)
    by_key = {endpoint.key: name for endpoint, name in zip(listed, names, strict=True)}
    tools = (_make_tool(name, endpoint, by_key) for endpoint, name in zip(listed, names, strict=True))
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}


def _make_tool(name: str, endpoint: Endpoint, names: Mapping[tuple[str, str], str]) -> Tool:
    semantic = endpoint.semantic
    schema, wraps = _output_schema(endpoint.output_schema)
    output = _compile(schema)
    entry: dict[str, Any] = {
        "name": name,
        "title": name.replace("_", " ").replace("-", " ").strip().capitalize() or name,
        "description": "\n".join(_description(endpoint, names)),
        "inputSchema": {"type": "object", **endpoint.input_schema},
        "annotations": {
            "readOnlyHint": semantic.impact == "informational",
            "destructiveHint": semantic.impact == "irreversible",
            "idempotentHint": semantic.is_idempotent,
            "openWorldHint": endpoint.handler.type == "external_service",
        },
        "_meta": _meta(endpoint),
    }
    if output is not None:
        entry["outputSchema"] = schema
    return Tool(name, endpoint, entry, _compile(_closed(endpoint.input_schema)), output, wraps)


def _description(endpoint: Endpoint, names: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the lines of a description: the intent first, then what a caller should know (AGIS C.2(b))."""
    semantic = endpoint.semantic
    yield semantic.intent or endpoint.description or str(endpoint)
    if semantic.outcome:
        yield f"Outcome: {semantic.outcome}"
    if semantic.impact == "irreversible":
        yield "It cannot be undone" + (
            "." if endpoint.confirm is False else ", so a person confirms it before it runs."
        )
    if endpoint.deprecated is not None:
        yield _deprecation(endpoint, endpoint.deprecated, names)
    if semantic.parameter_hints:
        yield "Hints: " + "; ".join(f"{name} = {_phrases(hint)}" for name, hint in semantic.parameter_hints.items())


def _phrases(hint: object) -> str:
    phrases = hint if isinstance(hint, list) else [hint]
    texts = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in phrases)
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def _deprecation(endpoint: Endpoint, deprecated: Deprecation, names: Mapping[tuple[str, str], str]) -> str:
    successor = (deprecated.successor_method or endpoint.method, deprecated.successor_path or endpoint.path)
    use = f" Use {names.get(successor, ' '.join(successor))} instead." if successor != endpoint.key else ""
    gone = f"; it will be removed in {deprecated.removed_in}" if deprecated.removed_in else ""
    return f"Deprecated since {deprecated.deprecated_in}{gone}.{use}"


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
    if schema.get("type") == "object":
        return dict(schema), False
    inner = transplant(schema, lambda parts: "#" + pointer(("properties", RESULT, *parts)))
    return {"type": "object", "properties": {RESULT: inner}, "required": [RESULT]}, True


def _compile(schema: Mapping[str, Any] | None) -> Validator | None:
    found = None if schema is None else compile_schema(schema)
    return None if isinstance(found, Fault) else found


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Close a schema that does not say whether other arguments are allowed: an argument that nobody reads is a
    mistake.
    """
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    return {**schema, closing_keyword(schema): False}
