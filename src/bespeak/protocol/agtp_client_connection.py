"""Client side of one AGTP connection, one request at a time."""

from __future__ import annotations

import asyncio
import select
import ssl as tls
from typing import cast

from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.wire.connection import ClientConnection, Pairs
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, RESPONSE_LIMITS, Limits, ResponseMessage


class AgtpClientConnection(asyncio.Protocol):
    """AGTP connection, created by `open`. It is closed after an error; check `is_reusable` before the next request."""

    def __init__(self, address: str, limits: Limits) -> None:
        self._address = address
        self._wire = ClientConnection(limits)
        self._answer: asyncio.Future[ResponseMessage] | None = None
        self._begun = False  # bytes of the current answer have arrived
        self._ended = False

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        ssl: tls.SSLContext | None = None,
        limits: Limits = RESPONSE_LIMITS,
        connect_timeout: float = 10.0,
        server_name: str | None = None,
    ) -> AgtpClientConnection:
        """Connect, or raise OSError. `server_name` is the name in the certificate if `host` is an address."""
        address = f"{host}:{port}"
        name = server_name if ssl is not None else None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_timeout):
                _, protocol = await loop.create_connection(
                    lambda: cls(address, limits), host, port, ssl=ssl, server_hostname=name
                )
        except TimeoutError as error:
            raise TimeoutError(f"No connection to {address} within {connect_timeout:g} seconds.") from error
        except UnicodeError as error:
            raise OSError(f"{host[:80]!a} is not a valid host name.") from error
        return protocol

    @property
    def is_reusable(self) -> bool:
        """True if another request may be sent: none is in progress, and the server has neither closed nor sent data."""
        busy = self._ended or self._wire.awaited or self._wire.buffered or self._transport.is_closing()
        return not (busy or self._is_readable())

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, read_timeout: float | None = None
    ) -> ResponseMessage:
        """Send a request and wait for its response.

        Raises ConnectionResetError if the server closes before the first byte, TimeoutError or RemoteProtocolError.
        """
        if self._answer is not None:
            raise LocalProtocolError("This connection is waiting for a response; use one connection per request.")
        if self._ended:
            raise ConnectionResetError(f"{self._address} has closed this connection.")
        data = self._wire.send(method, target, headers, body)
        self._begun = False
        self._answer = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(read_timeout):
                self._transport.write(data)
                return await self._answer
        except TimeoutError as error:
            wanted = f"{method} {target[:80]} within {read_timeout:g} seconds"
            raise TimeoutError(f"{self._address} did not answer {wanted}.") from error
        finally:
            self._answer = None
            if self._wire.awaited:
                self.abort()

    def close(self) -> None:
        self._ended = True
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection, so that a late response is not read as the response to the next request."""
        self._ended = True
        self._transport.abort()

    # Callbacks of asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass received bytes to the pending response, or drop the connection if no request is pending."""
        self._begun = True
        self._wire.receive_data(data)
        self._take_event()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the pending response because the connection is closed."""
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._wire.receive_eof()
            self._take_event()

    def _take_event(self) -> None:
        event = self._wire.next_event()
        if event is NEED_DATA:
            return
        if isinstance(event, ResponseMessage):
            self._resolve(event)
        elif event is CLOSED or not self._begun:
            self._resolve(ConnectionResetError(f"{self._address} closed the connection without an answer."))
        else:
            self.abort()
            self._resolve(RemoteProtocolError(f"{self._address} sent no AGTP response: {event.message}"))

    def _resolve(self, result: ResponseMessage | Exception) -> None:
        if self._answer is None or self._answer.done():
            return
        if isinstance(result, Exception):
            self._answer.set_exception(result)
        else:
            self._answer.set_result(result)

    def _is_readable(self) -> bool:
        """Return True if the kernel holds bytes or an end of stream that the event loop has not delivered yet."""
        fileno: int = self._transport.get_extra_info("socket").fileno()
        if fileno < 0 or not hasattr(select, "poll"):
            return fileno < 0
        poll = select.poll()
        poll.register(fileno, select.POLLIN)
        return len(poll.poll(0)) > 0
