"""Tools of MCP servers: the external_service binding for MCP, with the five upstream errors (AGTP-API 12.3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.checks.evolution.change import ChangeList
from bespeak.checks.evolution.schema_diff import diff_schemas
from bespeak.checks.lint.rules.handler import UPSTREAM_SETUP
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import TOOL_ERROR, McpTool
from bespeak.contract.mcp_content import carries_content, text_of
from bespeak.contract.mcp_server import McpServer, schema_digest
from bespeak.contract.schema.compile import Validator
from bespeak.documents.mcp.tool_list import ListedTool
from bespeak.documents.mcp.tool_schema import fit_input
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.progress import REPORT
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.mcp.failure import FailureKind, McpFailure
from bespeak.runtime.bindings.mcp.launch import Launch, resolve_server
from bespeak.runtime.bindings.mcp.pool import McpPool, McpUpstream
from bespeak.runtime.bindings.mcp.result import error_text, read_output
from bespeak.runtime.bindings.upstream_outcome import UpstreamOutcome
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.printable import printable
from bespeak.text.language.injection import visible
from bespeak.text.language.instruction import instruction

if TYPE_CHECKING:
    from bespeak.runtime.bindings.mcp.connection import McpConnection

_logger = logging.getLogger(__name__)

INVALID_PARAMS: Final = -32602
_AGAIN: Final = "Run `bespeak import mcp` again and review the changes."
_ERRORS: Final[Mapping[FailureKind, tuple[str, str]]] = {
    "unreachable": ("upstream_connection_error", "The MCP server cannot be reached."),
    "lost": ("upstream_connection_error", "The MCP server ended during the call."),
    "timeout": ("upstream_timeout", "The MCP server did not answer in time."),
    "malformed": ("upstream_malformed_response", "The answer of the MCP server cannot be read."),
    "authentication": ("upstream_authentication_failed", "The MCP server does not accept this server's credentials."),
    "refused": ("upstream_error", "The MCP server refused the call."),
    "asks": (
        "upstream_error",
        "The tool asks for input from a user or a model ({}), which cannot be given here. Call it with all that it "
        "needs, or use another tool.",
    ),
    "changed": ("upstream_error", "{} The operator of this server has to import the MCP server again."),
}
"""Declared error and message of each failure."""
_EFFECTLESS: Final = frozenset({"unreachable", "authentication", "asks", "changed"})
"""Failures after which the tool has not run."""


def bind_tool(
    endpoint: Endpoint,
    handler: McpTool,
    environment: Mapping[str, str],
    *,
    pool: McpPool,
    output: Validator | None = None,
    trusts: bool = False,
) -> McpBinding | list[Diagnostic]:
    """Build the binding of an endpoint to a tool, or return the findings that prevent its registration.

    `environment` resolves the variables of the server. `output` checks the answers; with `trusts`, invalid ones are
    logged and passed on.
    """
    if find_spec("mcp") is None:
        message = "the endpoint calls an MCP server, but the MCP SDK is not installed"
        return [UPSTREAM_SETUP.at(endpoint, "/handler/mcp", message, "Run pip install 'bespeak[mcp]'.")]
    launch = resolve_server(handler.mcp, environment)
    if not isinstance(launch, Launch):
        advice = "Set it before the server starts."
        return [UPSTREAM_SETUP.at(endpoint, f"/handler/mcp{at}", fault, advice) for at, fault in launch]
    return McpBinding(endpoint, handler, pool.upstream(handler.mcp.key, launch), output=output, trusts=trusts)


class McpBinding:
    """Calls one tool. Failures are returned as declared errors, never raised."""

    def __init__(
        self,
        endpoint: Endpoint,
        handler: McpTool,
        upstream: McpUpstream,
        *,
        output: Validator | None = None,
        trusts: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._server = handler.mcp
        self._tool = handler.mcp.tool
        self._timeout = handler.timeout_seconds
        self._upstream = upstream
        self._outcome = UpstreamOutcome(endpoint, output, trusts=trusts)
        self._carries = carries_content(endpoint)
        self._tool_error = TOOL_ERROR if TOOL_ERROR in endpoint.error_names else "upstream_error"
        self._checked: tuple[object, int, McpFailure | None] | None = None
        self._probe: asyncio.Task[None] | None = None

    async def call(self, input: Mapping[str, Any], context: Context) -> Any:  # noqa: A002 - the draft's word
        """Call the tool with the input and return its output. The context is not sent: a server cannot verify it."""
        connection: McpConnection | McpFailure | None = None
        try:
            async with asyncio.timeout(self._timeout), self._upstream.places:
                connection = await self._upstream.connection()
                if isinstance(connection, McpFailure):
                    return self._failed(connection)
                result = await self._ask(connection, input)
        except TimeoutError:
            if connection is None:
                return self._failed(McpFailure("unreachable", f"the server is not ready after {self._timeout:g} s"))
            assert not isinstance(connection, McpFailure)
            self._look_after(connection)
            return self._failed(McpFailure("timeout", f"no answer within {self._timeout:g} s"))
        if isinstance(result, McpFailure):
            return self._failed(result)
        self._upstream.succeed()
        if not self._tool:
            return self._checked_offer(result)
        if result.get("isError"):
            text = error_text(result) or "The tool reports an error."
            return self._outcome.failed(self._tool_error, text)
        return self._outcome.check(
            read_output(result, carries=self._carries), f"The tool {brief(self._tool)} has answered"
        )

    async def _ask(self, connection: McpConnection, given: Mapping[str, Any]) -> dict[str, Any] | McpFailure:
        if self._server.prompt:
            return await connection.get_prompt(self._server.prompt, given)
        if self._server.resource:
            return await connection.read_resource(self._server.resource)
        return self._drift(connection) or await connection.call(self._tool, given, REPORT.get())

    def _checked_offer(self, result: dict[str, Any]) -> Any:
        """Return the messages of a prompt or the contents of a resource. A prompt is judged: it speaks to a model."""
        kept = {name: result[name] for name in ("description", "messages", "contents") if name in result}
        for message in kept.get("messages", ()):
            text = text_of(message["content"])
            spoken = instruction(text)
            if spoken is not None or visible(text) is not None:
                kind = "hides characters" if spoken is None else spoken.kind
                return self._outcome.failed(self._tool_error, f"The prompt {kind}, so it is not passed on.")
        return self._outcome.check(kept, f"The {self._server.named} was read")

    def _drift(self, connection: McpConnection) -> McpFailure | None:
        """Return why the tool is no longer the one of the contract. Judged once for each list of tools."""
        known = self._checked
        if known is not None and known[0] is connection and known[1] == connection.changes:
            return known[2]
        failure = find_drift(self._endpoint.input_schema, self._server, connection.tools.get(self._tool))
        self._checked = (connection, connection.changes, failure)
        return failure

    def _look_after(self, connection: McpConnection) -> None:
        """Find out beside the calls whether a server that was too slow still answers at all."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(connection.probe())

    def _failed(self, failure: McpFailure) -> Refused:
        name, message = _ERRORS[failure.kind]
        if failure.kind in ("asks", "changed"):
            message = message.format(printable(failure.text))
        elif failure.kind == "refused" and failure.code == INVALID_PARAMS:
            # The caller can correct its input only by the words of the server.
            name, message = self._tool_error, f"The tool refuses the input: {printable(failure.text)[:500]}"
        advice = f" {_AGAIN}" if failure.kind == "changed" else ""
        refused = self._outcome.failed(
            name, message, cause=f"{failure.text}{advice}", took_effect=failure.kind not in _EFFECTLESS
        )
        if failure.kind != "unreachable":
            return refused
        # Nothing was sent, so the same request may be repeated, even with the same key.
        return msgspec.structs.replace(refused, headers=(("Retry-After", str(failure.retry_after or 5)),))


def find_drift(contract: Mapping[str, Any], server: McpServer, tool: ListedTool | None) -> McpFailure | None:
    """Compare a tool as it is now with the one that was imported; return why calls by the contract may fail."""
    if tool is None:
        return McpFailure("changed", "The MCP server no longer has the tool.")
    if not server.input_digest or server.input_digest == schema_digest(tool.input_schema):
        return None
    changes = ChangeList()
    diff_schemas(dict(contract), fit_input(tool.input_schema)[0], "request", "", changes)
    broken = next((change for change in changes.found if change.level == "breaking"), None)
    if broken is not None:
        return McpFailure("changed", f"The input of the tool has changed: {broken.pointer}: {broken.message}.")
    _logger.warning("the input of the tool %s has changed since the import, but still fits. %s", server.tool, _AGAIN)
    return None
