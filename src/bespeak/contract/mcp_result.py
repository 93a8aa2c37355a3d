"""The result of a tool call that an MCP client gets."""

from __future__ import annotations

from typing import Any, Final

import msgspec

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
    structured: Any = {RESULT: output} if tool.wraps else output
    if tool.output is not None and not tool.output.is_valid(structured):
        message = f"{tool.name} returned an output that breaks its contract; it is not passed on."
        return _error(tool, refused(Refused(status.SERVER_ERROR, "output-validation-failed", message)), granting)
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    if isinstance(structured, dict):
        result["structuredContent"] = structured
    if outcome.warning is not None:
        result["_meta"] = {"bespeak/warning": outcome.warning}
    return result


def _error(tool: Tool, outcome: Outcome, granting: Granting) -> dict[str, Any]:
    """Build the result of a refusal: one JSON text, because clients may hold structured content against the output
    schema even then.
    """
    error = error_members(tool.endpoint, outcome, granting)
    return {"content": [{"type": "text", "text": msgspec.json.encode({"error": error}).decode()}], "isError": True}
