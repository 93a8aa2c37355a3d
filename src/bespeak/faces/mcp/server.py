"""The MCP server of a service, on the official SDK: both protocol eras, one set of handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import mcp_types as types
import msgspec
from mcp.server import subscriptions
from mcp.server.caching import CacheHint, apply_cache_hint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bespeak.contract.confirmation import LONGEST, declined, question, too_long_to_show, unlisted
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import META, Tool, check_arguments, result_of
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.faces.asking import ANSWER, FORM, Asking
from bespeak.faces.mcp.catalog import Backend, ResourceReader, ToolCatalog, Wanted
from bespeak.faces.mcp.results import FIELDS_MEMBER, KeptResults, Results, read_shape, shape_in
from bespeak.faces.progress import PATIENT, Progress
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.runtime.identity.authority import SAID
from bespeak.runtime.route_table import RouteTable
from bespeak.state.store.commands.cases import ACCEPTED, Case

MOST_TOLD: Final = 1_000  # sessions that are told; those that were silent for longest are forgotten first
_PATIENCE: Final = 5.0  # seconds for a client to take a notification
_logger = logging.getLogger(__name__)
_CACHED: Final = 60_000  # milliseconds for which clients may keep lists and documents; changes are announced
_KEPT: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
Context = ServerRequestContext[Any, Any]
Params = types.CallToolRequestParams
Asked = types.InputRequiredResult
_ANNOUNCED: Final = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)


class Audience:
    """Tells clients of changes. No request waits for a client that does not read."""

    def __init__(self) -> None:
        self.bus = subscriptions.InMemorySubscriptionBus()
        self._sessions: dict[str | None, ServerSession] = {}
        """Latest session of each connection of the handshake era, by its id; None is that of stdio."""
        self._telling: set[asyncio.Task[None]] = set()

    def meet(self, context: ServerRequestContext[Any, Any]) -> None:
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            key = getattr(context.request, "headers", {}).get("mcp-session-id")
            self._sessions.pop(key, None)
            self._sessions[key] = context.session
            if len(self._sessions) > MOST_TOLD:
                del self._sessions[next(iter(self._sessions))]

    def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    async def announce(self, uris: Iterable[str], *, tools: bool = True) -> None:
        """Tell all clients of changed endpoints and resources at `uris`; not `tools` if their list is a search."""
        events: list[subscriptions.ServerEvent] = [subscriptions.ToolsListChanged()] if tools else []
        for event in (
            *events,
            subscriptions.PromptsListChanged(),
            subscriptions.ResourcesListChanged(),
            *map(subscriptions.ResourceUpdated, uris),
        ):
            await self.bus.publish(event)
        for key, session in self._sessions.items():
            task = asyncio.create_task(self._tell(key, session, tools=tools))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, key: str | None, session: ServerSession, *, tools: bool) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                if tools:
                    await session.send_tool_list_changed()
                await session.send_prompt_list_changed()
                await session.send_resource_list_changed()
        except Exception:  # noqa: BLE001 - the client is gone or does not read
            if self._sessions.get(key) is session:
                del self._sessions[key]


# Headers that a client can send with one call, as members of its `_meta`. None of them gives authority.
_HEADERS: Final = (*SAID, names.IDEMPOTENCY_KEY, names.SEMANTIC_PROFILE)
_FAILED: Final = Refused(
    status.SERVER_ERROR, "server-error", "The call failed inside the MCP server; its log has the reason."
)


class _Announcing(Server[Any]):
    """A server that tells clients of the handshake era whether it announces changes of its lists."""

    announces = True

    def create_initialization_options(self, *given: Any, **named: Any) -> InitializationOptions:
        announced = (_ANNOUNCED,) if self.announces else ()
        return super().create_initialization_options(*(given or announced), **named)


class ToolServer:
    """Serves the tools of a backend. `server` is the SDK's server, for any transport.

    `server.announces` is False if clients of the handshake era have no sessions in which they could be told of changes.
    """

    def __init__(
        self, backend: Backend, asking: Asking, settings: McpSettings | None = None, *, keeps: bool = True
    ) -> None:
        """Serve a backend. `keeps` is False if other processes answer too, so that no result can be kept here."""
        self._backend = backend
        self._asking = asking
        self._settings = settings or McpSettings()
        self._endpoints: Sequence[Endpoint] | None = None
        self.catalog = ToolCatalog((), self._settings)  # the tools as they were last read
        self._listed: tuple[ToolCatalog, types.ListToolsResult] | None = None
        self._own: WeakKeyDictionary[RouteTable, ToolCatalog] = WeakKeyDictionary()  # of callers with own endpoints
        most = self._settings.max_result
        self.results = Results(most, KeptResults(backend.server_id, most) if keeps else None)
        self.audience = Audience()
        self._reading = reading = ResourceReader(backend, self._read, self.audience.meet, self.results.kept)
        self.server = _Announcing(
            backend.name,
            version=backend.version,
            instructions=self.catalog.instructions(backend.name),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=reading.list_resources,
            on_list_resource_templates=reading.list_templates,
            on_read_resource=reading.read_resource,
            on_list_prompts=reading.list_prompts,
            on_get_prompt=reading.get_prompt,
            on_subscriptions_listen=subscriptions.ListenHandler(self.audience.bus),
            cache_hints=dict.fromkeys(_KEPT, CacheHint(ttl_ms=_CACHED, scope="private")),
            get_tool_input_schema=self._input_schema,
        )
        # The SDK's tracing costs a fifth of a call, and nothing exports it.
        self.server.middleware.clear()

    async def find(self, name: str) -> Tool | None:
        """Find a tool by its name; look for new ones if it is not known."""
        catalog = await self._read()
        if name in (catalog.search.finder.name, catalog.search.caller.name):
            return None
        return catalog.tools.get(name) or (await self._read(refresh=True)).tools.get(name)

    async def find_called(self, name: str, arguments: bytes) -> Tool | None:
        """Find the tool that a call reaches. `arguments` are JSON; those of `call_capability` name the tool."""
        tool = await self.find(name)
        if tool is None and name == self.catalog.search.caller.name:
            try:
                given = msgspec.json.decode(arguments, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError):
                return None
            wanted = await self._unwrap(given)
            return wanted.tool if isinstance(wanted, Wanted) else None
        return tool

    async def _unwrap(self, arguments: dict[str, Any]) -> Wanted | Outcome:
        wanted = self.catalog.search.unwrap(arguments)
        if isinstance(wanted, Outcome) and wanted.status == status.NOT_FOUND:
            return (await self._read(refresh=True)).search.unwrap(arguments)
        return wanted

    async def refresh(self) -> None:
        """Read the endpoints again, and announce changed lists."""
        await self._read(refresh=True)

    async def watch(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                await self.refresh()
            except Exception as error:  # noqa: BLE001 - a service that is away for a moment keeps its tools
                _logger.warning("The endpoints cannot be read: %s", error)

    async def _read(self, *, refresh: bool = False) -> ToolCatalog:
        endpoints = await self._backend.endpoints(refresh=refresh)
        if endpoints is not self._endpoints:
            before, self.catalog = self.catalog, ToolCatalog(endpoints, self._settings)
            known, self._endpoints = self._endpoints is not None, endpoints
            self.server.instructions = self.catalog.instructions(self._backend.name)
            caller = self.catalog.search.caller.name
            self.results.fields = f"fields of {caller}" if self.catalog.is_searched else FIELDS_MEMBER
            if self.catalog.missing and not (known and before.missing == self.catalog.missing):
                _logger.warning("No endpoint is in the toolsets %s", ", ".join(self.catalog.missing))
            if known and _offered(before) != _offered(self.catalog):
                await self.audience.announce(self._reading.uris, tools=before.entries != self.catalog.entries)
        return self.catalog

    async def _read_for(self, request: Any) -> ToolCatalog:
        """Return the tools of a caller: those of everyone, and of endpoints that it alone has."""
        shared = await self._read()
        table = self._backend.own(request)
        if table is None:
            return shared
        if table not in self._own:
            self._own[table] = ToolCatalog(table.every, self._settings)
        return self._own[table]

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self.catalog.tools.get(name)
        return None if tool is None else tool.endpoint.input_schema

    def listing(self) -> types.ListToolsResult:
        """Return the list of the tools that everyone has, with cache hints; it is built once."""
        if self._listed is None or self._listed[0] is not self.catalog:
            self._listed = self.catalog, self._list(self.catalog)
        return self._listed[1]

    def _list(self, catalog: ToolCatalog) -> types.ListToolsResult:
        found = types.ListToolsResult(tools=[types.Tool.model_validate(entry) for entry in catalog.entries])
        return apply_cache_hint(found, self.server.cache_hints["tools/list"])

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self.audience.meet(context)
        try:
            await self._read(refresh=True)
            catalog = await self._read_for(context.request)
        except Exception as error:
            _logger.error("The tools cannot be listed", exc_info=error)
            message = "The endpoints of the service cannot be read; try again later."
            raise MCPError(types.INTERNAL_ERROR, message) from None
        return self.listing() if catalog is self.catalog else self._list(catalog)

    async def _call_tool(self, context: Context, params: Params) -> types.CallToolResult | Asked:
        self.audience.meet(context)
        tool: Tool | None = None
        try:
            found = await self._find_wanted(params.name, params.arguments or {}, context.request)
            if found is None:
                raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
            tool, wanted = found
            if isinstance(wanted, Outcome):
                return types.CallToolResult.model_validate(self.results.write(tool, wanted))
            shape = read_shape(tool, {**shape_in(context.meta or {}), **wanted.shape})
            outcome = shape if isinstance(shape, Outcome) else await self._carry_out(context, params, wanted)
            if isinstance(outcome, types.InputRequiredResult):
                return outcome
            caller = self._backend.caller(context.request)
            asked = None if isinstance(shape, Outcome) else shape
            result = self.results.write(tool, outcome, wanted.arguments, caller, asked)
            return types.CallToolResult.model_validate(result)
        except MCPError:
            raise
        except Exception as error:
            if tool is None:
                _logger.error("%s failed", params.name[:80], exc_info=error)
                raise MCPError(types.INTERNAL_ERROR, _FAILED.message) from None
            return types.CallToolResult.model_validate(self.fail(tool, error))

    def asks(self, tool: Tool) -> bool:
        endpoint = tool.endpoint
        return tool.is_irreversible and endpoint.confirm is None and not self._backend.is_confirmed(endpoint)

    def fail(self, tool: Tool, error: Exception) -> dict[str, Any]:
        """Log an error of our own; return the result of the call."""
        _logger.error("%s failed", tool.name, exc_info=error)
        return result_of(tool, refused(_FAILED))

    async def confirm(self, outcome: Outcome, call: Callable[[dict[str, str]], Awaitable[Outcome]]) -> Outcome:
        """Repeat a call that another party has confirmed, or say how it can be confirmed; `call` adds headers."""
        case_id = outcome.confirmation_id
        if case_id is None:
            return outcome
        if outcome.error.get("confirmation_status") == ACCEPTED:
            return await call({names.CONFIRMATION_ID: case_id})
        return Outcome(outcome.status, error={**outcome.error, "remedy": self._asking.remedy(case_id, demanded=True)})

    async def _find_wanted(
        self, name: str, arguments: dict[str, Any], request: Any
    ) -> tuple[Tool, Wanted | Outcome] | None:
        """Return the tool whose result the client gets, and what is to be called for it, or its outcome."""
        shared = await self.find(name)
        catalog = await self._read_for(request)
        is_own = catalog is not self.catalog
        tool = catalog.tools.get(name) if is_own else shared
        if tool is not None:
            return tool, Wanted(tool, arguments)
        search = catalog.search
        if name == search.finder.name:
            return search.finder, search.find(arguments)
        if name == search.caller.name:
            wanted = search.unwrap(arguments) if is_own else await self._unwrap(arguments)
            return (wanted.tool if isinstance(wanted, Wanted) else search.caller), wanted
        return None

    async def _carry_out(self, context: Context, params: Params, wanted: Wanted) -> Outcome | Asked:
        tool, arguments = wanted.tool, wanted.arguments
        if (invalid := check_arguments(tool.endpoint, tool.input, arguments)) is not None:
            return invalid
        headers = _headers(context.meta or {})
        if isinstance(headers, Outcome):
            return headers
        if self.asks(tool):
            lacking = self._backend.refuse(tool.endpoint, context.request, arguments, headers)
            refusal = lacking or await self._agree(context, params, tool, arguments)
            if refusal is not None:
                return refusal

        async def call(more: dict[str, str]) -> Outcome:
            return await self._backend.call(tool.endpoint, arguments, {**headers, **more}, context.request)

        try:
            # A client without a token does not hear of progress: long work is answered before its end.
            patience = PATIENT if "progress_token" in (context.meta or {}) else None
            async with Progress(context.session.report_progress, patience=patience):
                return await self.confirm(await call({}), call)
        except asyncio.CancelledError:
            _logger.info("%s was cancelled by its client", tool.name)
            raise

    async def _agree(
        self, context: Context, params: Params, tool: Tool, arguments: dict[str, Any]
    ) -> Outcome | Asked | None:
        """Let the user agree to a call; return None if it is admitted, once."""
        calls = await self._backend.calls(tool.endpoint, arguments, context.request)
        if isinstance(calls, Fault):
            return refused(unlisted(tool.name, calls))
        caller, parties = self._backend.caller(context.request), self._backend.parties(context.request)
        case = await self._asking.open(tool, arguments, caller, parties, calls)
        if isinstance(case, Outcome):
            return case
        if case.state != ACCEPTED:
            text = question(tool, arguments, calls)
            if len(text) > LONGEST:
                refusal = too_long_to_show(tool, text, self._asking.remedy(case.case_id))
                details = {"confirmation_id": case.case_id, **refusal.details}
                return refused(msgspec.structs.replace(refusal, details=details))
            if not _can_ask(context):
                return self._asking.unanswerable(tool, case)
            try:
                answer = await _ask(context, params, text, case)
            except MCPError:  # the client refuses to show the form, although it declared that it can
                return self._asking.unanswerable(tool, case)
            if isinstance(answer, types.InputRequiredResult):
                return answer
            agreed = answer.action == "accept" and (answer.content or {}).get(ANSWER) is True
            await self._asking.decide(case, agreed=agreed)
            if not agreed:
                return declined(tool)
        return await self._asking.use(case, parties)


async def _ask(context: Context, params: Params, text: str, case: Case) -> types.ElicitResult | Asked:
    """Return the user's answer, or the result with which a client of the modern era asks and calls again."""
    if not _is_modern(context):
        return await context.session.elicit_form(text, FORM, related_request_id=context.request_id)
    answer = (params.input_responses or {}).get(ANSWER)
    if isinstance(answer, types.ElicitResult) and params.request_state == case.case_id:
        return answer
    form = types.ElicitRequest(params=types.ElicitRequestFormParams(message=text, requested_schema=FORM))
    return types.InputRequiredResult(input_requests={ANSWER: form}, request_state=case.case_id)


def _headers(meta: Mapping[str, Any]) -> dict[str, str] | Outcome:
    found = {name: meta[f"{META}{name}"] for name in _HEADERS if meta.get(f"{META}{name}") is not None}
    for name, value in found.items():
        if not isinstance(value, str) or not is_header_value(value):
            return refused(Refused(status.BAD_REQUEST, f"invalid-{name}", f"{META}{name} must be printable text."))
    return found


def _can_ask(context: Context) -> bool:
    declared = context.session.client_capabilities
    found = None if declared is None else declared.elicitation
    if found is None or (found.form is None and found.url is not None):
        return False
    return _is_modern(context) or context.session.can_send_request


def _is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _offered(catalog: ToolCatalog) -> list[Any]:
    return [*(tool.entry for tool in catalog.tools.values()), *catalog.offers]
