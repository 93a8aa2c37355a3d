"""The MCP server of a service, on the official SDK: both protocol eras, one set of handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bespeak.contract.endpoint import Endpoint
from bespeak.faces.mcp.asking import ANSWER, FORM, Asking, declined, question
from bespeak.faces.mcp.backend import Backend
from bespeak.faces.mcp.outcome import Outcome, check_arguments, refused, result_of
from bespeak.faces.mcp.tool import META, Tool, make_tools
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.commands.cases import ACCEPTED, Case

_logger = logging.getLogger(__name__)

KEY: Final = f"{META}idempotency-key"
"""Member of a call's `_meta` with its idempotency key."""
_CACHED: Final = 60_000
"""Milliseconds for which clients may keep the list; changes are announced."""
_MOST_SESSIONS: Final = 1_000
"""Connections of the handshake era that are told of changes."""
_FAILED: Final = Refused(
    status.SERVER_ERROR, "server-error", "The call failed inside the MCP server; its log has the reason."
)

Context = ServerRequestContext[Any, Any]


class _Announcing(Server[Any]):
    """A server that tells clients of the handshake era that it announces changes of its list."""

    def create_initialization_options(self, *given: Any, **named: Any) -> InitializationOptions:
        return super().create_initialization_options(*(given or (NotificationOptions(tools_changed=True),)), **named)


class ToolServer:
    """Serves the tools of a backend. `server` is the SDK's server, for any transport."""

    def __init__(self, backend: Backend, asking: Asking) -> None:
        self._backend = backend
        self._asking = asking
        self._endpoints: Sequence[Endpoint] | None = None
        self._tools: dict[str, Tool] = {}
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[Any, ServerSession] = {}
        """Latest session of each connection of the handshake era, by its id; None is that of stdio."""
        self.server: Server[Any] = _Announcing(
            backend.name,
            version=backend.version,
            instructions=f"Tools of {backend.name}. Results with isError hold an error with a code and a remedy.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
            cache_hints={"tools/list": CacheHint(ttl_ms=_CACHED, scope="private")},
            get_tool_input_schema=self._input_schema,
        )
        # The SDK's tracing costs a fifth of a call, and nothing exports it.
        self.server.middleware.clear()

    async def find(self, name: str) -> Tool | None:
        """Find a tool by its name; look for new ones if it is not known."""
        return (await self._read()).get(name) or (await self._read(refresh=True)).get(name)

    async def refresh(self) -> None:
        """Read the endpoints again, and announce a changed list of tools."""
        await self._read(refresh=True)

    async def watch(self, interval: float) -> None:
        """Refresh at intervals, for ever."""
        while True:
            await asyncio.sleep(interval)
            try:
                await self.refresh()
            except Exception as error:  # noqa: BLE001 - a service that is away for a moment keeps its tools
                _logger.warning("The endpoints cannot be read: %s", error)

    async def _read(self, *, refresh: bool = False) -> dict[str, Tool]:
        endpoints = await self._backend.endpoints(refresh=refresh)
        if endpoints is not self._endpoints:
            before, self._tools = self._tools, make_tools(endpoints)
            known, self._endpoints = self._endpoints is not None, endpoints
            if known and _entries(before) != _entries(self._tools):
                await self._announce()
        return self._tools

    async def _announce(self) -> None:
        await self._bus.publish(ToolsListChanged())
        for key, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
            except Exception:  # noqa: BLE001 - the connection is gone
                del self._sessions[key]

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.get(name)
        return None if tool is None else tool.endpoint.input_schema

    def _meet(self, context: Context) -> None:
        """Remember the connection of a client of the handshake era, to tell it of changes."""
        if not _is_modern(context):
            key = getattr(context.request, "headers", {}).get("mcp-session-id")
            self._sessions.pop(key, None)
            self._sessions[key] = context.session
            if len(self._sessions) > _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]  # the one that was silent for longest

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._meet(context)
        try:
            tools = await self._read(refresh=True)
        except Exception as error:
            _logger.error("The tools cannot be listed", exc_info=error)
            raise MCPError(
                types.INTERNAL_ERROR, "The endpoints of the service cannot be read; try again later."
            ) from None
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool.entry) for tool in tools.values()])

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        self._meet(context)
        tool: Tool | None = None
        try:
            tool = await self.find(params.name)
            if tool is None:
                raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
            outcome = await self._carry_out(context, params, tool)
            if isinstance(outcome, types.InputRequiredResult):
                return outcome
            return types.CallToolResult.model_validate(result_of(tool, outcome))
        except MCPError:
            raise
        except Exception as error:
            _logger.error("%s failed", params.name[:80], exc_info=error)
            if tool is None:
                raise MCPError(types.INTERNAL_ERROR, _FAILED.message) from None
            return types.CallToolResult.model_validate(result_of(tool, refused(_FAILED)))

    async def _carry_out(
        self, context: Context, params: types.CallToolRequestParams, tool: Tool
    ) -> Outcome | types.InputRequiredResult:
        """Call a tool, after the user has agreed if that is needed."""
        arguments = params.arguments or {}
        invalid = check_arguments(tool, arguments)
        if invalid is not None:
            return invalid
        headers = {}
        key = (context.meta or {}).get(KEY)
        if key is not None:
            if not isinstance(key, str) or not is_header_value(key):
                return refused(Refused(status.BAD_REQUEST, "invalid-idempotency-key", f"{KEY} must be printable text."))
            headers["Idempotency-Key"] = key
        if tool.is_irreversible and tool.endpoint.confirm is None and not self._backend.is_confirmed(tool.endpoint):
            lacking = self._backend.refuse(tool.endpoint, context.request)
            refusal = lacking or await self._agree(context, params, tool, arguments)
            if refusal is not None:
                return refusal
        return await self._call(tool, arguments, headers, context.request)

    async def _call(self, tool: Tool, arguments: dict[str, Any], headers: dict[str, str], request: Any) -> Outcome:
        outcome = await self._backend.call(tool.endpoint, arguments, headers, request)
        case_id = outcome.error.get("confirmation_id")
        if outcome.error.get("code") != "confirmation-required" or not isinstance(case_id, str):
            return outcome
        if outcome.error.get("confirmation_status") == ACCEPTED:
            headers = {**headers, "Confirmation-ID": case_id}
            return await self._backend.call(tool.endpoint, arguments, headers, request)
        return Outcome(outcome.status, error={**outcome.error, "remedy": self._asking.remedy(case_id)})

    async def _agree(
        self, context: Context, params: types.CallToolRequestParams, tool: Tool, arguments: dict[str, Any]
    ) -> Outcome | types.InputRequiredResult | None:
        """Let the user agree to a call; return None if it is admitted, once."""
        case = await self._asking.open(tool, arguments, self._backend.caller(context.request))
        if isinstance(case, Outcome):
            return case
        if case.state != ACCEPTED:
            if not _can_ask(context):
                return self._asking.unanswerable(tool, case)
            try:
                answer = await _ask(context, params, question(tool, arguments), case)
            except MCPError:  # the client refuses to show the form, although it declared that it can
                return self._asking.unanswerable(tool, case)
            if isinstance(answer, types.InputRequiredResult):
                return answer
            agreed = answer.action == "accept" and (answer.content or {}).get(ANSWER) is True
            await self._asking.decide(case, agreed=agreed)
            if not agreed:
                return declined(tool)
        return await self._asking.use(case)


async def _ask(
    context: Context, params: types.CallToolRequestParams, text: str, case: Case
) -> types.ElicitResult | types.InputRequiredResult:
    """Return the user's answer, or the result with which a client of the modern era asks and calls again."""
    if not _is_modern(context):
        return await context.session.elicit_form(text, FORM, related_request_id=context.request_id)
    answer = (params.input_responses or {}).get(ANSWER)
    if isinstance(answer, types.ElicitResult) and params.request_state == case.case_id:
        return answer
    form = types.ElicitRequest(params=types.ElicitRequestFormParams(message=text, requested_schema=FORM))
    return types.InputRequiredResult(input_requests={ANSWER: form}, request_state=case.case_id)


def _can_ask(context: Context) -> bool:
    """Return True if the client can show a form to its user."""
    declared = context.session.client_capabilities
    found = None if declared is None else declared.elicitation
    if found is None or (found.form is None and found.url is not None):
        return False
    return _is_modern(context) or context.session.can_send_request


def _is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _entries(tools: Mapping[str, Tool]) -> list[Mapping[str, Any]]:
    return [tool.entry for tool in tools.values()]
