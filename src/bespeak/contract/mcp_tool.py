"""An endpoint as an MCP tool: schemas, annotations, content blocks, results and refusals (AGIS appendix C)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import describe_tool, tool_names
from bespeak.contract.handler import McpServer, McpTool
from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS, closed, transplant
from bespeak.contract.schema.validation import DIALECT, Validator, compile_schema, refuse_input
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.text.source.pointer import pointer

CONTENT: Final = "content"  # member of an output that holds the blocks
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}  # types of blocks, each with the texts that it must have
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "array",
    "description": "Content blocks of MCP. Images and audio have their data in Base64, and a mimeType.",
    "items": {"type": "object", "properties": {"type": {"type": "string", "enum": list(KINDS)}}, "required": ["type"]},
}  # schema of the member, by which a face that only knows the contract recognizes it


def carries_content(endpoint: Endpoint) -> bool:
    """Return True if the output may have blocks: its schema declares them, or leaves room for those of an upstream."""
    properties = endpoint.output_schema.get("properties")
    declared = properties.get(CONTENT) if isinstance(properties, Mapping) else None
    if declared is not None:
        return declares_content(declared)
    # A manifest does not tell whether the upstream speaks MCP.
    is_upstream = endpoint.handler.type == McpTool.type
    return is_upstream and endpoint.output_schema.get("additionalProperties") is not False


def declares_content(schema: Any) -> bool:
    """Return True for the schema of blocks, whatever an author has added to it."""
    for name in ("items", "properties", "type"):
        schema = schema.get(name) if isinstance(schema, Mapping) else None
    return isinstance(schema, Mapping) and schema.get("enum") == list(KINDS)


def without_content(schema: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: value for name, value in schema.get("properties", {}).items() if name != CONTENT}
    apart = {name: value for name, value in schema.items() if name != "properties"}
    return {**apart, "properties": members} if members else apart


def blocks_in(output: Any) -> list[dict[str, Any]] | None:
    """Return the blocks of an output; None if it has none, or some that no client could read."""
    blocks = output.get(CONTENT) if isinstance(output, dict) else None
    return blocks if isinstance(blocks, list) and all(map(_is_block, blocks)) else None


def text_of(block: Mapping[str, Any]) -> str:
    return str(block.get("resource", block).get("text", ""))


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") not in KINDS:
        return False
    if block["type"] != "resource":
        return all(isinstance(block.get(name), str) for name in KINDS[block["type"]])
    resource = block.get("resource")
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        return False
    return isinstance(resource.get("text"), str) or isinstance(resource.get("blob"), str)


_HOLDING: Final = frozenset({"contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"})
"""Keywords with one schema. Those that close a schema are not among them: a boolean is their usual value."""


def without_booleans(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a schema with `{}` for each true schema below it and `{"not": {}}` for each false one."""
    made: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in DATA_KEYWORDS:
            made[keyword] = value
        elif keyword in NAMING_KEYWORDS and isinstance(value, Mapping):
            made[keyword] = {name: _object(part) for name, part in value.items()}
        elif isinstance(value, list):
            made[keyword] = [_object(part) for part in value]
        else:
            made[keyword] = _object(value) if keyword in _HOLDING or isinstance(value, Mapping) else value
    return made


def _object(part: Any) -> Any:
    if isinstance(part, bool):
        return {} if part else {"not": {}}
    return without_booleans(part) if isinstance(part, Mapping) else part


_DATED: Final = re.compile(
    rb'"(?:\$(?!schema"|ref")[a-zA-Z]+|dependentRequired|dependentSchemas|maxContains|minContains|prefixItems'
    rb'|unevaluatedItems|unevaluatedProperties)":'
)  # keywords that earlier dialects do not have; a member with such a name does no harm


def compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a schema without an empty `required`, repeated titles, and a dialect that changes nothing."""
    made = dict(schema)
    if made.get("$schema") in (DIALECT, f"{DIALECT}#") and not _DATED.search(msgspec.json.encode(schema)):
        del made["$schema"]
    if made.get("required") == []:
        del made["required"]
    if isinstance(made.get("$defs"), Mapping):
        made["$defs"] = {name: _untitled(name, part) for name, part in made["$defs"].items()}
    return made


def _untitled(name: str, part: Any) -> Any:
    if isinstance(part, Mapping) and part.get("title") == name:
        return {keyword: value for keyword, value in part.items() if keyword != "title"}
    return part


RESULT: Final = "result"  # member that holds an output which is not an object: MCP allows only objects
PARTIAL: Final = "partial_result"  # member of the structured content that holds a part of an output, alone
_PLAIN: Final = frozenset(
    {"$schema", "$defs", "$comment", "additionalProperties", "description", "examples", "properties", "title", "type"}
)  # keywords of an object that no partial result can break
META: Final = "bespeak/"  # prefix of our members of `_meta`


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One endpoint that a client can call by name."""

    name: str
    endpoint: Endpoint
    entry: Mapping[str, Any]  # entry of tools/list
    input: Validator | None  # validator that refuses undeclared arguments; None if the schema is not usable
    output: Validator | None  # validator of the structured content; None if no output schema is published
    wraps: bool  # True if the output is the member `result` of the structured content
    blocks: bool = False  # True if the output may have content blocks, which are not part of the structured content

    @property
    def is_irreversible(self) -> bool:
        return self.endpoint.semantic.impact == "irreversible"


def make_tools(endpoints: Iterable[Endpoint]) -> dict[str, Tool]:
    """Make the tools of a service by name, sorted, without internal endpoints, prompts and resources."""
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
        "inputSchema": {"type": "object", **compact_schema(without_booleans(endpoint.input_schema))},
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
    """Return the published schema, and whether it wraps the output. A mere `object` is not published."""
    if not schema or dict(schema) == {"type": "object"}:
        return None, False
    schema = compact_schema(without_booleans(schema))
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


_UNREAD: Final = frozenset({"method", "path", "confirm_with", "retry_with", "digest"})  # members for AGTP only


@dataclass(frozen=True, slots=True)
class Granting:
    """How a user gives authority to the client of a model, in words."""

    scopes: Callable[[Sequence[str]], str]  # says how to grant scopes
    identity: str  # says how to give an identity and scopes


def check_arguments(endpoint: Endpoint, validator: Validator | None, arguments: dict[str, Any]) -> Outcome | None:
    """Refuse arguments that break the contract or are unknown to it; return None if they are valid.

    Arguments with a semantic envelope may be in the words of the caller: the service judges them.
    """
    try:
        envelope = arguments.get("semantic")
        meant = isinstance(envelope, dict) and "@context" in envelope
        if validator is None or meant or validator.is_valid(arguments):
            return None
        return refused(refuse_input(endpoint.method, endpoint.path, validator.violations(arguments)))
    except ValueError:
        return invalid_arguments("The arguments are nested too deeply or contain text that is not valid Unicode.")


def invalid_arguments(message: str) -> Outcome:
    """Refuse arguments that cannot be compared with the contract at all."""
    return refused(Refused(status.BAD_REQUEST, "invalid-arguments", message))


def error_members(endpoint: Endpoint, outcome: Outcome, granting: Granting) -> dict[str, Any]:
    """Return the members of a refusal that a model can act on: code, message, details and a remedy."""
    error = {name: value for name, value in outcome.error.items() if name not in _UNREAD}
    error.setdefault("remedy", _remedy(endpoint, outcome, granting))
    return error


def _remedy(endpoint: Endpoint, outcome: Outcome, granting: Granting) -> str:
    error: Mapping[str, Any] = outcome.error
    missing = error.get("missing_scopes")
    if isinstance(missing, list) and missing:
        return f"Ask the user to grant these scopes to this client; {granting.scopes(missing)}."
    if "violations" in error:
        names = ", ".join(endpoint.input_schema.get("properties", {}))
        return f"Correct the arguments and call again. They are: {names}." if names else "Call again without arguments."
    match outcome.status:
        case status.UNAUTHORIZED | status.AUTHORIZATION_REQUIRED:
            return f"Ask the user to give this client an identity and scopes; {granting.identity}."
        case status.RATE_LIMITED | status.UNAVAILABLE:
            when = f"in {outcome.retry_after} seconds" if outcome.retry_after else "later"
            return f"Call again {when}."
        case status.NOT_FOUND if error.get("code") == "endpoint-not-found":
            return "List the tools again: this one is no longer offered."
        case status.UNPROCESSABLE:
            return "Act on the message and its details, or call again with other arguments."
        case number if number >= status.SERVER_ERROR:
            return "Tell the user that the service failed. Repeat the call only if repeating does no harm."
        case _:
            return "Tell the user; the same call will be refused again."


GRANTING: Final = Granting(
    lambda scopes: f"over stdio: bespeak mcp {' '.join(f'--scope {scope}' for scope in scopes)}",
    "over stdio: bespeak mcp with --agent-id, --scope or --token-file",
)


def result_of(tool: Tool, outcome: Outcome, granting: Granting = GRANTING) -> dict[str, Any]:
    """Build the CallToolResult of an outcome; `granting` says how a user gives authority."""
    if not outcome.ok:
        return _error(tool, outcome, granting)
    output = outcome.output
    blocks = blocks_in(output) if tool.blocks else None
    if blocks is not None:
        output = {name: value for name, value in output.items() if name != CONTENT}
    structured: Any = {RESULT: output} if tool.wraps else output
    if outcome.mapping is not None and tool.output is not None and not tool.output.is_valid(structured):
        # In the words of the caller, which the published schema does not know.
        structured = {PARTIAL: output if isinstance(output, dict) else {RESULT: output}}
    elif tool.output is not None and not tool.output.is_valid(structured):
        message = f"{tool.name} returned an output that breaks its contract; it is not passed on."
        return _error(tool, refused(Refused(status.SERVER_ERROR, "output-validation-failed", message)), granting)
    if blocks is None:
        text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        blocks = [{"type": "text", "text": text}]
    elif tool.output is None and not output:
        return _with_notes({"content": blocks, "isError": False}, outcome)
    result: dict[str, Any] = {"content": blocks, "isError": False}
    if isinstance(structured, dict):
        result["structuredContent"] = structured
    return _with_notes(result, outcome)


def _error(tool: Tool, outcome: Outcome, granting: Granting) -> dict[str, Any]:
    """Build a refusal as JSON text: clients may hold structured content against the output schema."""
    text = msgspec.json.encode({"error": error_members(tool.endpoint, outcome, granting)}).decode()
    return _with_notes({"content": [{"type": "text", "text": text}], "isError": True}, outcome)


def _with_notes(result: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Add what headers say of a call to the metadata of its result."""
    notes = {"bespeak/warning": outcome.warning, "bespeak/semantic-mapping": outcome.mapping}
    meta = {name: value for name, value in notes.items() if value is not None}
    return {**result, "_meta": meta} if meta else result
