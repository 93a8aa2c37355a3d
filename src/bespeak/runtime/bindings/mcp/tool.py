"""Tools of MCP servers: the external_service binding for MCP, with the five upstream errors (AGTP-API 12.3)."""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.checks.evolution.change import ChangeList
from bespeak.checks.evolution.schema_diff import diff_schemas
from bespeak.checks.lint.rules.handler import UPSTREAM_SETUP
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import TOOL_ERROR, McpServer, McpTool, schema_digest
from bespeak.contract.mcp_tool import CONTENT, carries_content, text_of
from bespeak.contract.schema.validation import Validator
from bespeak.documents.mcp.tools import ListedTool, fit_input
from bespeak.protocol.exchange.messages import REPORT, Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.mcp.process import FailureKind, Launch, McpFailure, resolve_server
from bespeak.runtime.bindings.upstream import UpstreamOutcome
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, printable
from bespeak.text.language.injection import instruction, visible
from bespeak.text.reading.json_data import RepeatedKeyError, decode_json

if TYPE_CHECKING:
    import ssl

    from bespeak.runtime.bindings.mcp.connection import McpConnection

_MOST_CALLS: Final = 64  # calls of one server at one time
_LONGEST_WAIT: Final = 30.0  # seconds between two starts of a server that keeps failing


class McpPool:
    def __init__(self, clock: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None) -> None:
        """Create a pool. `tls` replaces the system's trust store."""
        self._clock = clock
        self._tls = tls
        self._upstreams: dict[tuple[object, ...], McpUpstream] = {}

    def upstream(self, key: tuple[object, ...], launch: Launch) -> McpUpstream:
        """Return the upstream for a server; nothing is started before the first call."""
        found = self._upstreams.get(key)
        if found is None:
            found = self._upstreams[key] = McpUpstream(launch, self._clock, self._tls)
        return found

    async def aclose(self) -> None:
        """End all servers. A later call starts its server again."""
        await asyncio.gather(*(upstream.aclose() for upstream in self._upstreams.values()))


class McpUpstream:
    """One server. A failed start is not repeated before its waiting time is over."""

    def __init__(self, launch: Launch, clock: Callable[[], float], tls: ssl.SSLContext | None) -> None:
        self.places = asyncio.Semaphore(_MOST_CALLS)
        self._launch = launch
        self._clock = clock
        self._tls = tls
        self._connection: McpConnection | None = None
        self._opening: asyncio.Task[McpConnection | McpFailure] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._reason = ""

    async def connection(self) -> McpConnection | McpFailure:
        """Return the open connection. Starts the server if it does not run; all callers wait for the same start."""
        known = self._connection
        if known is not None:
            if known.is_open:
                return known
            self._connection = None
            self._note("the server has ended")
            await known.close()
        if self._opening is None:
            wait = self._not_before - self._clock()
            if wait > 0:
                return McpFailure("unreachable", self._reason, retry_after=math.ceil(wait))
            self._opening = asyncio.create_task(self._open())
        opening = self._opening
        try:
            # A caller whose time is over must not stop the start for the others.
            return await asyncio.shield(opening)
        finally:
            if opening.done() and self._opening is opening:
                self._opening = None

    def succeed(self) -> None:
        """Forget earlier failures: the server has answered a call."""
        self._failures = 0

    async def aclose(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _open(self) -> McpConnection | McpFailure:
        # The SDK takes a second to load, so it is loaded beside the loop and only if it is needed.
        module = await asyncio.to_thread(importlib.import_module, "bespeak.runtime.bindings.mcp.connection")
        connection: McpConnection = module.McpConnection(self._launch, self._tls)
        fault = self._launch.fault
        failure = McpFailure("unreachable", fault) if fault else await connection.open()
        if failure is not None:
            self._note(failure.text)
            await connection.close()
            return failure
        self._connection = connection
        return connection

    def _note(self, reason: str) -> None:
        """Count a failure. The first restart is immediate; each further one waits twice as long as the one before."""
        self._failures += 1
        self._reason = reason
        wait = 0.0 if self._failures == 1 else min(0.5 * 2 ** min(self._failures - 2, 16), _LONGEST_WAIT)
        self._not_before = self._clock() + wait


WRAPPED: Final = "result"  # field for structured content that is not an object, as MCP servers themselves name it
_LONGEST_ERROR: Final = 2_000


def read_output(result: Mapping[str, Any], *, carries: bool = True) -> dict[str, Any]:
    """Return the structured content, else a single text that is a JSON object, else the blocks of content.

    Images, audio and resources beside structured content are added to it, if the output `carries` them.
    """
    blocks = result.get("content") or []
    if result.get("structuredContent") is not None:
        content = result["structuredContent"]
        output = content if isinstance(content, dict) else {WRAPPED: content}
        beside = carries and CONTENT not in output and any(block.get("type") != "text" for block in blocks)
        return {**output, CONTENT: blocks} if beside else output
    if len(blocks) == 1 and blocks[0].get("type") == "text":
        try:
            data = decode_json(blocks[0].get("text", "").encode())
        except (msgspec.DecodeError, RepeatedKeyError, UnicodeError, RecursionError):
            data = None
        if isinstance(data, dict) and not (carries and CONTENT in data):
            return data
    return {CONTENT: blocks}


def error_text(result: Mapping[str, Any]) -> str:
    texts = [block.get("text", "") for block in result.get("content") or [] if block.get("type") == "text"]
    said = printable(" ".join(" ".join(texts).split()))
    return f"{said[:_LONGEST_ERROR]}..." if len(said) > _LONGEST_ERROR else said


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
}  # declared error and message of each failure
_EFFECTLESS: Final = frozenset({"unreachable", "authentication", "asks", "changed"})  # after these the tool has not run


def bind_tool(
    endpoint: Endpoint,
    handler: McpTool,
    environment: Mapping[str, str],
    *,
    pool: McpPool,
    output: Validator | None = None,
    trusts: bool = False,
) -> McpBinding | list[Diagnostic]:
    """Build the binding of an endpoint to a tool, or return the findings that prevent its registration."""
    if find_spec("mcp") is None:
        message = "the endpoint calls an MCP server, but the MCP SDK is not installed"
        return [UPSTREAM_SETUP.at(endpoint, "/handler/mcp", message, "Run pip install 'bespeak[mcp]'.")]
    launch = resolve_server(handler.mcp, environment)
    if not isinstance(launch, Launch):
        advice = "Set it before the server starts."
        return [UPSTREAM_SETUP.at(endpoint, f"/handler/mcp{at}", fault, advice) for at, fault in launch]
    outcome = UpstreamOutcome(endpoint, output, trusts=trusts)
    return McpBinding(handler, pool.upstream(handler.mcp.key, launch), outcome)


class McpBinding:
    """Calls one tool. Failures are returned as declared errors, never raised."""

    def __init__(self, handler: McpTool, upstream: McpUpstream, outcome: UpstreamOutcome) -> None:
        endpoint = self._endpoint = outcome.endpoint
        self._server = handler.mcp
        self._tool = handler.mcp.tool
        self._timeout = handler.timeout_seconds
        self._upstream = upstream
        self._outcome = outcome
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
            if self._probe is None or self._probe.done():
                # Find out beside the calls whether a server that was too slow still answers at all.
                self._probe = asyncio.create_task(connection.probe())
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
