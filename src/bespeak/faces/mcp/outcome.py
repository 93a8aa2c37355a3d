"""The reply to a tool call, in terms of AGTP, and the result that an MCP client gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from bespeak.contract.schema.report import refuse_input
from bespeak.faces.mcp.tool import RESULT, Tool
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused

_UNREAD: Final = frozenset({"method", "path", "confirm_with", "retry_with", "digest"})
"""Members of an error that only callers over AGTP can use."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply of a service to a call: an output, or a refusal."""

    status: int
    output: Any = None
    """Output of a call that was carried out: JSON data, or text if the service does not send JSON."""
    error: Mapping[str, Any] = field(default_factory=dict)
    """Members of a refusal: code, message, details and others."""
    retry_after: str | None = None
    warning: str | None = None
    """Warning that the endpoint or its verb is deprecated."""

    @property
    def ok(self) -> bool:
        """True if the call was carried out."""
        return status.is_success(self.status)


def refused(refusal: Refused) -> Outcome:
    """Turn a refusal of our own into an outcome."""
    return Outcome(refusal.status, error={"code": refusal.code, "message": refusal.message, **refusal.details})


def check_arguments(tool: Tool, arguments: dict[str, Any]) -> Outcome | None:
    """Refuse arguments that break the contract or are unknown to it; return None if they are valid."""
    try:
        if tool.input is None or tool.input.is_valid(arguments):
            return None
        return refused(refuse_input(tool.endpoint.method, tool.endpoint.path, tool.input.violations(arguments)))
    except ValueError as error:  # nested too deeply for the validator, or text that is not valid Unicode
        return refused(Refused(status.BAD_REQUEST, "invalid-arguments", f"The arguments are not usable: {error}."))


def result_of(tool: Tool, outcome: Outcome) -> dict[str, Any]:
    """Build the CallToolResult of an outcome."""
    if not outcome.ok:
        return _error(tool, outcome)
    output = outcome.output
    structured: Any = {RESULT: output} if tool.wraps else output
    if tool.output is not None and not tool.output.is_valid(structured):
        message = f"{tool.name} returned an output that breaks its contract; it is not passed on."
        return _error(tool, refused(Refused(status.SERVER_ERROR, "output-validation-failed", message)))
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    if isinstance(structured, dict):
        result["structuredContent"] = structured
    if outcome.warning is not None:
        result["_meta"] = {"bespeak/warning": outcome.warning}
    return result


def _error(tool: Tool, outcome: Outcome) -> dict[str, Any]:
    """Build the result of a refusal: one JSON text, because clients may hold structured content against the output
    schema even then.
    """
    error = {name: value for name, value in outcome.error.items() if name not in _UNREAD}
    error.setdefault("remedy", _remedy(tool, outcome))
    return {"content": [{"type": "text", "text": msgspec.json.encode({"error": error}).decode()}], "isError": True}


def _remedy(tool: Tool, outcome: Outcome) -> str:
    """Say what the caller can do about a refusal."""
    error = outcome.error
    missing = error.get("missing_scopes")
    if isinstance(missing, list) and missing:
        options = " ".join(f"--scope {scope}" for scope in missing)
        return f"Ask the user to grant these scopes to this client; over stdio: bespeak mcp {options}."
    if "violations" in error:
        names = ", ".join(tool.endpoint.input_schema.get("properties", {}))
        return f"Correct the arguments and call again. They are: {names}." if names else "Call again without arguments."
    match outcome.status:
        case status.UNAUTHORIZED | status.AUTHORIZATION_REQUIRED:
            return (
                "Ask the user to give this client an identity and scopes; over stdio: bespeak mcp with --agent-id, "
                "--scope or --token-file."
            )
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
