"""A model's call of a tool, in the shape of any provider, and the result as the message that the provider expects."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import PARTIAL
from bespeak.contract.schema.view import members_of
from bespeak.contract.truncation import cut_to_fit
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import brief

Shape = Literal["openai", "openai-responses", "anthropic", "gemini", "plain"]
_PARTS: Final = ("tool_calls", "output", "content", "parts")  # members of a message that list its calls
MOST: Final = 50_000  # characters of a result, unless the program wants another limit
LEAST: Final = 1_000  # least number of characters that a result may be limited to
_MARKER: Final = 300  # characters for what is said beside a cut output


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants to be called. Nothing is checked yet."""

    shape: Shape  # provider whose shape the result has to have; `plain` for a dictionary of the application's own
    name: str
    arguments: Any  # arguments as given: an object, or a JSON text
    id: str | None = None


def read_call(call: Any) -> ToolCall:
    """Read a call of a provider's package, or the same as a dictionary. Raises ConfigError for anything else."""
    found = _find_call(_as_data(call))
    if found is None:
        raise ConfigError(
            f"{brief(call)} is not a tool call. Pass a tool call of OpenAI, Anthropic or Gemini, or "
            "{'name': ..., 'arguments': ..., 'id': ...}."
        )
    return found


def read_calls(message: Any) -> list[ToolCall]:
    """Read the calls in a model's message, or in a list of calls and other parts. Other parts are skipped."""
    return [found for part in _parts(message) if (found := _find_call(_as_data(part))) is not None]


def _parts(message: Any) -> Iterator[Any]:
    if isinstance(message, list | tuple):
        yield from message
        return
    data = _as_data(message)
    if _find_call(data) is not None:
        yield data
    listed = next((data[name] for name in _PARTS if isinstance(data.get(name), list)), None)
    if listed is None and isinstance(data.get("candidates"), list) and data["candidates"]:
        yield from _parts(_as_data(data["candidates"][0]).get("content"))
    yield from listed or ()


def _find_call(data: Mapping[str, Any]) -> ToolCall | None:
    kind = data.get("type")
    function = data.get("function")
    if isinstance(function, Mapping):
        return _made("openai", function, "arguments", data.get("id"))
    if kind == "function_call":
        return _made("openai-responses", data, "arguments", data.get("call_id"))
    if kind == "tool_use":
        return _made("anthropic", data, "input", data.get("id"))
    part = data.get("function_call") or data.get("functionCall")
    if isinstance(part, Mapping):
        return _made("gemini", part, "args", part.get("id"))
    if kind in (None, "tool_call"):
        key = next((name for name in ("arguments", "args", "input") if name in data), None)
        return None if key is None else _made("plain", data, key, data.get("id"))
    return None


def _made(shape: Shape, data: Mapping[str, Any], arguments: str, call_id: Any) -> ToolCall | None:
    name = data.get("name")
    if not isinstance(name, str):
        return None
    given = data.get(arguments)
    # A tool without parameters: some providers send nothing, others an empty text.
    return ToolCall(shape, name, {} if given is None or given == "" else given, str(call_id) if call_id else None)


def _as_data(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        data = dump()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = dataclasses.asdict(value)
    else:
        data = None
    return data if isinstance(data, Mapping) else {}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a model is told about its call."""

    output: Any = None  # output of the endpoint: JSON data or text
    error: Mapping[str, Any] | None = None  # code, message, details and remedy of a refusal; None after a success

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
