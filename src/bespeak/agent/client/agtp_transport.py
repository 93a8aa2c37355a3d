"""AGTP transports of the client: a pool of connections with or without TLS, and a handler in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from ssl import SSLContext
from typing import Final

from bespeak.agent.client.sender import is_wire_logged, log_received, log_sent
from bespeak.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bespeak.protocol.address import Locator
from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.exchange.messages import Connection, Handler, Malformed, Request, Response
from bespeak.protocol.tls import client_context
from bespeak.protocol.translation import RequestReader, messages_of, to_bytes
from bespeak.protocol.wire.connection import ClientConnection, Pairs
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, RESPONSE_LIMITS, Limits, ResponseMessage

_VERSION: Final = "AGTP/1.0"
_STREAM: Final = ("Prefer", "stream")


def _log_request(method: str, target: str, headers: Pairs, body: bytes) -> None:
    if is_wire_logged():
        log_sent(f"{_VERSION} {method} {target}", [*headers, ("Content-Length", str(len(body)))], body)


class Pool:
    """Pool of at most `size` connections, last used first. Servers may close after each reply."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        size: int = 10,
        connect_timeout: float = 10.0,
        read_timeout: float | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._ssl = ssl
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._slots = asyncio.Semaphore(size)
        self._idle: list[AgtpClientConnection] = []

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request over a pooled or a new connection. Raises OSError or RemoteProtocolError.

        A server may close an idle connection while the request is on its way. With `retry`, the request is then sent
        once more over a new connection: set it only if processing the request twice does no harm.
        """
        headers = tuple(headers)
        async with self._slots:
            if (kept := self._take()) is not None:
                try:
                    return await self._exchange(kept, method, target, headers, body)
                except ConnectionResetError:
                    if not retry:
                        raise
            return await self._exchange(await self._open(), method, target, headers, body)

    async def stream(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b""
    ) -> AsyncGenerator[ResponseMessage]:
        """Ask for a stream over a connection of its own, and yield its messages."""
        async with self._slots:
            connection, headers = await self._open(), (*headers, _STREAM)
            _log_request(method, target, headers, body)
            try:
                messages = connection.stream(method, target, headers, body, read_timeout=self._read_timeout)
                async with aclosing(messages):
                    async for message in messages:
                        log_received(_VERSION, message)
                        yield message
            finally:
                connection.close()

    async def close(self) -> None:
        """Close the idle connections. Requests in progress finish."""
        while self._idle:
            self._idle.pop().close()

    async def _open(self) -> AgtpClientConnection:
        return await AgtpClientConnection.open(
            self._host, self._port, ssl=self._ssl, limits=RESPONSE_LIMITS, connect_timeout=self._connect_timeout
        )

    def _take(self) -> AgtpClientConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                return connection
            connection.abort()
        return None

    async def _exchange(
        self, connection: AgtpClientConnection, method: str, target: str, headers: Pairs, body: bytes
    ) -> ResponseMessage:
        _log_request(method, target, headers, body)
        try:
            response = await connection.request(method, target, headers, body, read_timeout=self._read_timeout)
        except BaseException:
            connection.abort()
            raise
        log_received(_VERSION, response)
        if connection.is_reusable:
            self._idle.append(connection)
        else:
            connection.close()
        return response


def choose_tls(
    locator: Locator,
    *,
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
    client_cert: str | Path | None = None,
    client_key: str | Path | None = None,
) -> SSLContext | None:
    """Return the TLS settings for a host, or None for plain TCP.

    Loopback hosts use plain TCP unless `tls`, `ca_file` or `client_cert` is given; any other host uses plain TCP only
    with `insecure`. The client certificate is sent to servers that request one.
    """
    if client_key is not None and client_cert is None:
        raise ConfigError("client_key (--client-key) requires client_cert (--client-cert).")
    wanted = tls or ca_file is not None or client_cert is not None
    if insecure and wanted:
        raise ConfigError("insecure (plain TCP) cannot be combined with tls, ca_file or client_cert (TLS).")
    if insecure or (locator.address.is_loopback and not wanted):
        return None
    return client_context(ca_file, verify=verify, cert=client_cert, key=client_key)


class InProcess:
    """Exchanger that calls a handler. All requests belong to one connection."""

    def __init__(self, handler: Handler, *, limits: Limits = DEFAULT_LIMITS, face: str = "agtp") -> None:
        """Call a handler; `face` is the face that its logs and its audit trail name."""
        self._handler = handler
        self._limits = limits
        self._connection = Connection(face=face, peer="in-process")

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request through both readers and writers and wait for its response. `retry` has no effect."""
        client = ClientConnection()
        answer = await self._answer(client, method, target, headers, body)
        if answer.stream is not None:
            await answer.stream.aclose()
            raise LocalProtocolError("A request with Prefer: stream has several answers; use `stream`.")
        return _read(client, answer)

    async def stream(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b""
    ) -> AsyncGenerator[ResponseMessage]:
        """Ask for a stream, and yield its messages."""
        client = ClientConnection()
        answer = await self._answer(client, method, target, (*headers, _STREAM), body)
        if answer.stream is None:
            yield _read(client, answer)
            return
        async with aclosing(messages_of(answer, answer.stream)) as messages:
            async for message, is_last in messages:
                client.awaited = 1
                yield _read(client, message)
                if is_last:
                    return

    async def _answer(
        self, client: ClientConnection, method: str, target: str, headers: Pairs, body: bytes
    ) -> Response:
        _log_request(method, target, headers, body)
        server = RequestReader(self._limits, self._connection)
        server.receive_data(client.send(method, target, headers, body))
        message = server.next_event()
        if isinstance(message, Request):
            answer = self._handler(message)
            if not isinstance(answer, Response):
                answer = await answer
        elif isinstance(message, Malformed):
            answer = self._handler.malformed(message, self._connection)
        else:
            raise RemoteProtocolError("The reader expects more data after a complete request.")
        self._connection.answered += 1
        return answer

    async def close(self) -> None:
        """Do nothing: no connections are open."""


def _read(client: ClientConnection, answer: Response) -> ResponseMessage:
    client.receive_data(to_bytes(answer))
    event = client.next_event()
    if not isinstance(event, ResponseMessage):
        raise RemoteProtocolError(f"The handler did not return a valid AGTP response: {event}.")
    log_received(_VERSION, event)
    return event
