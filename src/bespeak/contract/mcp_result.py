"""The result of a tool call that an MCP client gets."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.contract.mcp_content import CONTENT, blocks_in
from bespeak.contract.mcp_tool import RESULT, Tool
from bespeak.contract.tool_error import Granting, error_members
from bespeak.protocol import status
from bespeak.protocol.exchange.outcome import Outcome, refused
from bespeak.protocol.exchange.refusal import Refused

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
    if tool.output is not None and not tool.output.is_valid(structured):
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
    """Build the result of a refusal: one JSON text, because clients may hold structured content against the output
    schema even then.
    """
    error = error_members(tool.endpoint, outcome, granting)
    text = msgspec.json.encode({"error": error}).decode()
    return _with_notes({"content": [{"type": "text", "text": text}], "isError": True}, outcome)


def _with_notes(result: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Add what headers say of a call to the metadata of its result."""
    notes = {"bespeak/warning": outcome.warning, "bespeak/semantic-mapping": outcome.mapping}
    meta = {name: value for name, value in notes.items() if value is not None}
    return {**result, "_meta": meta} if meta else result
