"""MCP over standard input and output, and the service behind it, which is called through a client.

There is one message for each line, whatever else reads and prints there. The SDK has such a transport, too. It takes
the descriptors only when the service is loaded, leaves lines that are not messages unanswered, and cannot end while a
read waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, BinaryIO, Final

import anyio
import mcp_types as types
from mcp.server import lowlevel
from mcp.shared.message import SessionMessage

from bespeak.agent.client.called_service import CalledService
from bespeak.agent.client.service import ServiceClient
from bespeak.contract.confirmation import ListedCall, list_named
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import offered_by
from bespeak.contract.service import Service
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.faces.http.dispatched import judge_purchase
from bespeak.faces.mcp.sessions import InvalidMessage, is_id, read_message
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import essence
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal, Scopes
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.runtime.call import Call, parties_of
from bespeak.runtime.extension import LIST_CALLS
from bespeak.runtime.server import Server

LONGEST: Final = 16 * 1024 * 1024  # bytes of a line
_GRACE: Final = 5.0  # seconds in which cancelled calls must end, and the last answers must be read
Wire = tuple[BinaryIO, BinaryIO]  # the files that belong to the protocol: what the client writes, and what it reads


def claim() -> Wire:
    """Take standard input and output for the protocol.

    From now on, standard input is empty, and what anything prints goes to standard error: Python, libraries in C and
    other processes.
    """
    wire = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(empty, 1)
    os.close(empty)
    return wire


async def serve_stdio(server: lowlevel.Server[Any], wire: Wire, stop: asyncio.Event) -> None:
    """Serve one client until it closes its end or `stop` is set. Calls that still run are cancelled.

    A thread may wait for the client for ever after that, so the process has to end with `os._exit`.
    """
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sending, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    with incoming, received, sending, outgoing:
        running = asyncio.create_task(server.run(received, sending, server.create_initialization_options()))
        reading = asyncio.create_task(_read(wire[0], incoming, sending.clone()))
        writing = asyncio.create_task(_write(wire[1], outgoing))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((running, writing, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in (running, reading, stopping):
            task.cancel()
        await asyncio.wait((running, reading), timeout=_GRACE)
        await asyncio.wait((writing,), timeout=_GRACE)


async def _read(file: BinaryIO, incoming: Any, answers: Any) -> None:
    """Read messages. A line that is not a message is answered with an error, so that no client waits in vain."""
    async with incoming, answers:
        while line := await asyncio.to_thread(file.readline, LONGEST):
            if len(line) == LONGEST and not line.endswith(b"\n"):
                await asyncio.to_thread(_skip_line, file)
                message = f"The line is longer than {LONGEST} bytes"
                found: types.JSONRPCMessage = _refuse(InvalidMessage(types.INVALID_REQUEST, message, None))
            elif line.isspace():
                continue
            else:
                found = parse_line(line)
            await (answers if isinstance(found, _RefusedMessage) else incoming).send(SessionMessage(found))


def _skip_line(file: BinaryIO) -> None:
    while (part := file.readline(LONGEST)) and not part.endswith(b"\n"):
        pass


async def _write(file: BinaryIO, outgoing: Any) -> None:
    """Write messages until there are no more, or the client does not read them."""

    def put(line: bytes) -> None:
        file.write(line)
        file.flush()

    with suppress(OSError):
        async for sent in outgoing:
            line = sent.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
            await asyncio.to_thread(put, line.encode())


class _RefusedMessage(types.JSONRPCError):
    """An error of ours. A client sends errors, too: in reply to a question."""


def parse_line(line: bytes) -> types.JSONRPCMessage:
    """Parse a line into a message of the client; return the error that answers it if it is not one."""
    message = read_message(line)
    if isinstance(message, InvalidMessage):
        return _refuse(message)
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        number = message.id if is_id(message.id) else None
        return _refuse(InvalidMessage(types.INVALID_REQUEST, "This message cannot be read", number))


def _refuse(found: InvalidMessage) -> _RefusedMessage:
    error = types.ErrorData(code=found.code, message=found.message)
    return _RefusedMessage(jsonrpc="2.0", id=found.id, error=error)


class ClientBackend:
    def __init__(
        self,
        client: ServiceClient,
        manifest: ManifestDocument,
        *,
        caller: str = "",
        scopes: Scopes | None = None,
        service: Service | None = None,
        server: Server | None = None,
    ) -> None:
        """Serve what a manifest describes.

        `caller` is the Agent-ID of the client, and `scopes` its authority, None if only the service knows it. `service`
        is a loaded target, and `server` what serves it inside this process.
        """
        self._client = client
        self._server = server
        self._described: Sequence[Endpoint] | None = None
        self._offered: Sequence[Endpoint] = ()
        self._manifest = manifest
        policies = manifest.policies if service is None else service.policies
        self._service = CalledService(client, policies=policies, scopes=scopes)
        self._service.keeps_envelopes = True
        self._caller = caller
        name = manifest.server.name if service is None else service.identity.name
        self.name = name or manifest.server.server_id
        self.server_id = manifest.server.server_id
        self.version = manifest.document_version

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints of the manifest. What serves a loaded target knows which of them are prompts."""
        found = await self._service.endpoints(refresh=refresh)
        if self._server is not None and found is not self._described:
            own = self._server.routes.endpoints
            self._described = found
            self._offered = [
                replace(one, handler=own[one.key].handler)
                if one.key in own and offered_by(own[one.key]) is not None
                else one
                for one in found
            ]
        return found if self._server is None else self._offered

    def own(self, request: Any) -> None:
        """Return None: there is one caller, and the manifest is what the service shows it."""
        return

    async def document(self, media_type: str, request: Any) -> bytes | None:
        """Ask an AGTP service for a document; other services on the web have theirs at addresses of their own."""
        if not self._manifest.agtp_version:
            return None
        reply = await self._client.request("DISCOVER", "/", headers={"Accept": media_type})
        kind = essence(reply.headers.get("content-type", ""))
        return reply.body if reply.ok and kind.startswith(media_type) else None

    def caller(self, request: Any) -> str:
        return self._caller

    def parties(self, request: Any) -> tuple[str, ...]:
        """Return everyone behind the client, as far as this process knows."""
        return () if self._server is None else parties_of(self._call(self._server))

    async def calls(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], request: Any
    ) -> tuple[ListedCall, ...] | Fault:
        if self._server is None:
            return list_named(endpoint, arguments, await self._service.endpoints())
        found = self._server.routes.endpoints.get(endpoint.key)
        return () if found is None else await self._server.hooks[LIST_CALLS](self._call(self._server), found, arguments)

    def _call(self, server: Server) -> Call:
        """Return a call of the client, as it is known by its Agent-ID."""
        call = Call(Request("DISCOVER", "/", "", {}, b"", Connection(face="mcp")), server)
        who = server.principals.resolve(self._caller, None) if self._caller else ANONYMOUS
        call.principal = Principal(agent_id=self._caller) if isinstance(who, Refused) else who
        return call

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if another party confirms every call: the contract says so, or the service has."""
        return self._service.is_confirmed(endpoint)

    def refuse(
        self,
        endpoint: Endpoint,
        request: Any,
        arguments: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Outcome | None:
        """Refuse a call whose scopes are known to be missing, or a purchase here that is not in order."""
        missing = self._service.lacking(endpoint)
        if not missing:
            if self._server is None or arguments is None:
                return None
            found = judge_purchase(self._call(self._server), endpoint, arguments, headers or {})
            return None if found is None else refused(found)
        message = f"{endpoint} needs the scopes {', '.join(missing)}, which this server was not started with."
        error = {"code": "scope-violation", "message": message, "missing_scopes": missing}
        return Outcome(status.SCOPE_VIOLATION, error=error)

    async def call(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str], request: Any
    ) -> Outcome:
        return await self._service.call(endpoint, arguments, headers)
