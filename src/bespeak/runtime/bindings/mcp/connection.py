"""A connection to an MCP server, a child process or on the web: one session for all calls, with the tools of now."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import httpx2
import mcp_types as types
import msgspec
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from bespeak.documents.mcp.tools import ListedTool, Offer
from bespeak.protocol.address_guard import system_trust
from bespeak.protocol.exchange.messages import Report
from bespeak.runtime.bindings.mcp.process import TOO_LARGE, FailureKind, LastWords, Launch, McpFailure, run_process
from bespeak.runtime.bindings.upstream import MAX_RESPONSE_BYTES
from bespeak.runtime.concurrency import cancel_tasks

if TYPE_CHECKING:
    import ssl

    from mcp.client._transport import TransportStreams
    from mcp.client.session import ClientSession, IncomingMessage
    from mcp.shared.dispatcher import ProgressFnT

EntryT = TypeVar("EntryT")
NOT_ACCEPTED: Final = -32902  # code of our own error for HTTP 401 and 403
_REFUSING: Final = frozenset({httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN})
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)  # a server may hold a stream open; each call has its own deadline


@asynccontextmanager
async def open_web(
    url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None = None
) -> AsyncIterator[TransportStreams]:
    """Open a connection to a server. `tls` replaces the system's trust store."""
    # An encoded body could be a decompression bomb; only identity is requested and read.
    given = {**headers, "Accept-Encoding": "identity", "User-Agent": "bespeak"}
    transport = _BoundedTransport(verify=tls or system_trust(), trust_env=False)
    async with (
        httpx2.AsyncClient(transport=transport, headers=given, timeout=_TIMEOUT, trust_env=False) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_RESPONSE_BYTES) as streams,
    ):
        yield streams


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Transport whose answers are bounded. The SDK would read any, and would not tell a status from another."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.status_code in _REFUSING:
            await response.aclose()
            return _error(response.status_code, NOT_ACCEPTED, "the server does not accept the credential")
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            await response.aclose()
            return _error(502, -32700, "the answer is compressed, although no compression was requested")
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream)
        return response


def _error(status: int, code: int, message: str) -> httpx2.Response:
    """Return an answer that the SDK passes on as the error of the request."""
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_RESPONSE_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                # The SDK reports it as an answer that cannot be read.
                raise httpx2.StreamError(f"the answer is larger than {MAX_RESPONSE_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


_logger = logging.getLogger(__name__)

# The SDK logs stack traces about what servers send; failures are told by values here.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
logging.getLogger("client").addFilter(lambda record: "/mcp/client/" not in record.pathname)

START_SECONDS: Final = 60.0  # for starting and listing tools: a program may have to be downloaded first
MOST_TOOLS: Final = 2_000
MOST_LISTED_BYTES: Final = 32 * 1024 * 1024  # bounds of a list of tools over all its pages
_MOST_PAGES: Final = 500
_HINTS: Final = {"read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint"}
_PROBE_SECONDS: Final = 5.0
_RESULT: Final[TypeAdapter[Any]] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
_PROMPT: Final[TypeAdapter[Any]] = TypeAdapter(types.GetPromptResult | types.InputRequiredResult)
_CONTENTS: Final[TypeAdapter[Any]] = TypeAdapter(types.ReadResourceResult | types.InputRequiredResult)


class McpConnection:
    """A running session. It lives in a task of its own, because the SDK ties a session to the task that opened it."""

    def __init__(self, launch: Launch, tls: ssl.SSLContext | None = None, start_seconds: float = START_SECONDS) -> None:
        """Prepare a connection. `tls` replaces the system's trust store."""
        self.tools: Mapping[str, ListedTool] = {}  # tools by name; the list follows the server
        self.repeated: tuple[str, ...] = ()  # names listed more than once; only the first tool can be called
        self.offers: list[Offer] = []  # prompts and resources, after they were read
        self.changes = 0  # number of times that the list was read
        self.title = ""
        self.version = ""
        self.instructions = ""
        self.protocol = ""
        self._launch = launch
        self._tls = tls
        self._start_seconds = start_seconds
        self._closing = False
        self._said = LastWords(launch.name)
        self._ended = asyncio.Event()
        self._ready = asyncio.Event()
        self._session: ClientSession | None = None
        self._has_prompts = self._has_resources = False
        self._fault: McpFailure | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._session is not None and not self._ended.is_set()

    async def open(self) -> McpFailure | None:
        """Start the server and list its tools; return why that failed. A cancelled caller leaves nothing behind."""
        self._task = asyncio.create_task(self._run())
        try:
            await self._ready.wait()
        except asyncio.CancelledError:
            await self.close()
            raise
        return None if self.is_open else self._fault or McpFailure("unreachable", "the server ended")

    async def close(self) -> None:
        """End the session, and the process of the server with all its children."""
        self._closing = True
        self._ended.set()
        if self._task is not None and not self._task.done():
            # A session that has not begun cannot be ended in order.
            patience = 10.0 if self._ready.is_set() else 0.0
            _, pending = await asyncio.wait({self._task}, timeout=patience)
            await cancel_tasks(*pending)

    async def call(
        self, tool: str, arguments: Mapping[str, Any], report: Report | None = None
    ) -> dict[str, Any] | McpFailure:
        """Call a tool; return its result as JSON data. The caller's deadline cancels it; `report` tells progress."""
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
        # Not `call_tool`: it checks the output with a library whose patterns can take unbounded time.
        return await self._ask(request, _RESULT, report)

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any] | McpFailure:
        params = types.GetPromptRequestParams(name=name, arguments=dict(arguments))
        return await self._ask(types.GetPromptRequest(params=params), _PROMPT)

    async def read_resource(self, uri: str) -> dict[str, Any] | McpFailure:
        return await self._ask(types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri)), _CONTENTS)

    async def _ask(
        self, request: Any, form: TypeAdapter[Any], report: Report | None = None
    ) -> dict[str, Any] | McpFailure:
        if self._session is None or self._ended.is_set():
            return self._lost("unreachable")
        try:
            result = await self._session.send_request(request, form, progress_callback=_telling(report))
        except MCPError as error:
            return self._failure(error)
        except (ValueError, RuntimeError) as error:
            return McpFailure("malformed", f"{type(error).__name__}: {error}"[:500])
        if isinstance(result, types.InputRequiredResult):
            asked = sorted({one.method for one in (result.input_requests or {}).values()})
            return McpFailure("asks", ", ".join(asked) or "an answer")
        found: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_unset=True)
        return found

    async def read_offers(self) -> McpFailure | None:
        """Read the lists of prompts and resources, if the server has some; return why that failed."""
        session, found = self._session, list[Offer]()
        if session is None:
            return self._lost("unreachable")
        try:
            async with asyncio.timeout(self._start_seconds):
                if self._has_prompts:
                    found += await _list_all("prompts", session.list_prompts, _prompts)
                if self._has_resources:
                    found += await _list_all("resources", session.list_resources, _resources)
        except (TimeoutError, MCPError, ValueError, RuntimeError) as error:
            return self._describe(error)
        self.offers = list({(offer.kind, offer.key): offer for offer in reversed(found)}.values())[::-1]
        return None

    async def probe(self) -> None:
        """End the session of a server that no longer answers, so that the next call starts another one."""
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._read_tools()
        except (TimeoutError, MCPError, ValueError, RuntimeError):
            _logger.warning("%s: the MCP server does not answer; it is started again", self._launch.name)
            await self.close()

    async def _run(self) -> None:
        try:
            await self._attempt("auto")
            if self._launch.command and self._ended.is_set() and not (self._ready.is_set() or self._closing):
                # Some servers of earlier revisions end when the first message is not `initialize`.
                self._ended.clear()
                self._said = LastWords(self._launch.name)
                await self._attempt("legacy")
        finally:
            self._ended.set()
            self._ready.set()

    async def _attempt(self, mode: str) -> None:
        try:
            async with AsyncExitStack() as stack:
                await self._live(stack, mode)
        except Exception as error:  # noqa: BLE001 - a transport may fail in any way
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup) and cause.exceptions:  # in which the SDK wraps a failure
                cause = cause.exceptions[0]
            self._fault = self._describe(cause)
        finally:
            self._session = None

    async def _live(self, stack: AsyncExitStack, mode: str) -> None:
        client = Client(
            self._transport(),
            mode=mode,
            cache=None,
            client_info=types.Implementation(name="bespeak", version="1"),
            message_handler=self._on_message,
        )
        async with asyncio.timeout(self._start_seconds):
            await stack.enter_async_context(client)
            self._session = client.session
            self.protocol = client.protocol_version
            info = client.server_info
            self.title, self.version = (info.title or info.name, info.version) if info else ("", "")
            self.instructions = client.instructions or ""
            self._has_prompts = client.server_capabilities.prompts is not None
            self._has_resources = client.server_capabilities.resources is not None
            await self._read_tools()
        self._ready.set()
        watching = asyncio.create_task(self._watch(client))
        try:
            await self._ended.wait()
        finally:
            self._session = None
            await cancel_tasks(watching)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        launch = self._launch
        if launch.command:
            async with run_process(launch, self._said, self._ended.set) as streams:
                yield streams
            return
        headers = launch.read_headers()
        if isinstance(headers, str):
            raise OSError(f"the token in {launch.token_file} cannot be read: {headers}")
        async with open_web(launch.url, headers, self._tls) as streams:
            yield streams

    async def _read_tools(self) -> None:
        """Read all pages of the list. Raises ValueError if it has no end."""
        session = self._session
        if session is None:
            raise RuntimeError("the session has ended")
        listed = await _list_all("tools", session.list_tools, lambda page: map(_listed, page.tools))
        found: dict[str, ListedTool] = {}
        self.repeated = tuple(one.name for one in listed if found.setdefault(one.name, one) is not one)
        self.tools = found
        self.changes += 1

    async def _watch(self, client: Client) -> None:
        """Read the list again when a server of the present revision says that it has changed."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        with suppress(MCPError, ValueError, RuntimeError, TimeoutError):
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    await self._read_tools()

    async def _on_message(self, message: IncomingMessage) -> None:
        """Read the list again when a server of an earlier revision says that it has changed."""
        if isinstance(message, types.ToolListChangedNotification) and self._ready.is_set():
            with suppress(MCPError, ValueError, RuntimeError):
                await self._read_tools()
        await anyio.lowlevel.checkpoint()

    def _describe(self, error: BaseException) -> McpFailure:
        match error:
            case MCPError(code=types.CONNECTION_CLOSED):
                return self._lost("unreachable")
            case MCPError():
                return self._failure(error)
            case TimeoutError():
                return McpFailure("unreachable", f"no list of tools within {self._start_seconds:g} s")
            case ValidationError() | ValueError():
                return McpFailure("malformed", f"{type(error).__name__}: {error}"[:500])
            case _:
                return McpFailure("unreachable", f"{type(error).__name__}: {error}"[:500])

    def _failure(self, error: MCPError) -> McpFailure:
        if error.code == types.CONNECTION_CLOSED:
            return self._lost("lost")
        if (error.code, error.message) == (types.INVALID_REQUEST, "Session terminated"):
            # What the SDK says when a server on the web no longer knows the session; the next call begins another one.
            self._ended.set()
            return McpFailure("unreachable", "the session has ended")
        if error.code == types.REQUEST_TIMEOUT:
            return McpFailure("timeout", error.message)
        if error.code == NOT_ACCEPTED:
            return McpFailure("authentication", error.message)
        if error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY:
            wanted = error.data.get("requiredCapabilities") if isinstance(error.data, dict) else None
            return McpFailure("asks", ", ".join(map(str, wanted)) if wanted else error.message)
        if error.code in (TOO_LARGE, types.PARSE_ERROR):
            return McpFailure("malformed", error.message)
        return McpFailure("refused", error.message, error.code)

    def _lost(self, kind: FailureKind) -> McpFailure:
        words = str(self._said)
        return McpFailure(kind, f"the server has ended{f'. It said: {words}' if words else ''}")


async def _list_all(
    what: str, list_page: Callable[..., Awaitable[Any]], read: Callable[[Any], Iterable[EntryT]]
) -> list[EntryT]:
    """Read all pages of a list. Raises ValueError if it is too long, or has no end."""
    found: list[EntryT] = []
    cursor, size = None, 0
    for _ in range(_MOST_PAGES):
        page = await list_page(params=types.PaginatedRequestParams(cursor=cursor))
        entries = list(read(page))
        found += entries
        size += sum(len(msgspec.json.encode(entry)) for entry in entries)
        if len(found) > MOST_TOOLS or size > MOST_LISTED_BYTES:
            raise ValueError(f"the server lists more than {MOST_TOOLS} {what} or {MOST_LISTED_BYTES} bytes")
        if (cursor := page.next_cursor) is None:
            return found
    raise ValueError(f"the server's list of {what} has more than {_MOST_PAGES} pages")


def _telling(report: Report | None) -> ProgressFnT | None:
    async def tell(progress: float, total: float | None, message: str | None) -> None:
        assert report is not None
        report(progress, total, message)

    return None if report is None else tell


def _listed(tool: types.Tool) -> ListedTool:
    given = tool.annotations
    hints = {} if given is None else given.model_dump(by_alias=True, include=_HINTS, exclude_none=True)
    return ListedTool(
        name=tool.name,
        title=tool.title or (given.title if given else None) or "",
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        hints=hints,
    )


def _prompts(page: types.ListPromptsResult) -> Iterable[Offer]:
    for one in page.prompts:
        given = tuple((each.name, each.description or "", bool(each.required)) for each in one.arguments or ())
        told = {"title": one.title or "", "description": one.description or ""}
        yield Offer(kind="prompt", name=one.name, arguments=given, **told)


def _resources(page: types.ListResourcesResult) -> Iterable[Offer]:
    for one in page.resources:
        yield Offer(
            kind="resource", name=one.name, uri=str(one.uri), title=one.title or "", description=one.description or ""
        )
