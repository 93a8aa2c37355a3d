"""The result of a tool call as the message that a provider expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.agent.tools.tool_call import ToolCall
from bespeak.contract.cutting import cut_to_fit
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import PARTIAL
from bespeak.contract.schema.members import members_of

MOST: Final = 50_000
"""Characters of a result, unless the program wants another limit."""
LEAST: Final = 1_000
"""Least number of characters that a result may be limited to."""
_MARKER: Final = 300
"""Characters for what is said beside a cut output."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a model is told about its call."""

    output: Any = None
    """Output of the endpoint: JSON data or text."""
    error: Mapping[str, Any] | None = None
    """Code, message, details and remedy of a refusal; None if the call was carried out."""

    @property
    def text(self) -> str:
        """The result as a text: JSON, unless the output is a text itself."""
        if self.error is not None:
            return _json({"error": self.error})
        return self.output if isinstance(self.output, str) else _json(self.output)

    def message(self, call: ToolCall) -> dict[str, Any]:
        """Return the result in the shape of the call."""
        match call.shape:
            case "openai":
                return {"role": "tool", "tool_call_id": call.id or "", "content": self.text}
            case "openai-responses":
                return {"type": "function_call_output", "call_id": call.id or "", "output": self.text}
            case "anthropic":
                failed = {"is_error": True} if self.error is not None else {}
                return {"type": "tool_result", "tool_use_id": call.id or "", "content": self.text, **failed}
            case "gemini":
                response = {"output": self.output} if self.error is None else {"error": self.error}
                named = {"id": call.id} if call.id else {}
                return {"functionResponse": {**named, "name": call.name, "response": response}}
            case _:
                named = {"id": call.id} if call.id else {}
                return {**named, "name": call.name, "content": self.text, "is_error": self.error is not None}


def bounded(result: ToolResult, most: int, endpoint: Endpoint) -> ToolResult:
    """Cut a result that is too long by the contract, and say what it lacks, as over MCP."""
    if len(result.text) <= most:
        return result
    if result.error is not None:
        return ToolResult(error=cut_to_fit(dict(result.error), most - _MARKER, members_of({})).output)
    found = cut_to_fit(result.output, most - _MARKER, members_of(endpoint.output_schema))
    rest = "Call again with arguments that match less, or page by page if there are arguments for it."
    return ToolResult({PARTIAL: {"output": found.output, "left_out": found.left_out, "rest": rest}})


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
