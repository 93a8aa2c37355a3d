"""The client's end of one AGTP connection, one request at a time."""

from __future__ import annotations

import asyncio
import select
import ssl as tls
from typing import cast

from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.wire.connection import ClientConnection
from bespeak.protocol.wire.limits import RESPONSE_LIMITS, Limits
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, ResponseMessage
from bespeak.protocol.wire.writer import Pairs


class AgtpClientConnection(asyncio.Protocol):
    """Made by `open`. After an error it is closed; `is_reusable` tells whether another request may follow."""

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
    ) -> AgtpClientConnection:
        """Connect, with the TLS handshake if there is a context. Raises OSError, TimeoutError among them."""
        address = f"{host}:{port}"
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_timeout):
                _, protocol = await loop.create_connection(lambda: cls(address, limits), host, port, ssl=ssl)
        except TimeoutError as error:
            raise TimeoutError(f"No connection to {address} within {connect_timeout:g} seconds.") from error
        except UnicodeError as error:
            raise OSError(f"{host[:80]!a} is no host name.") from error
        return protocol

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent: none is under way, and the server has neither closed nor spoken up."""
        busy = self._ended or self._wire.awaited or self._wire.buffered or self._transport.is_closing()
        return not (busy or self._is_readable())

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, read_timeout: float | None = None
    ) -> ResponseMessage:
        """Send a request and wait for its response.

        Raises ConnectionResetError if the server closes before the first byte of it, TimeoutError if it takes too
        long, RemoteProtocolError if it is not AGTP or breaks off.
        """
        if self._answer is not None:
            raise LocalProtocolError("This connection is waiting for an answer; use one connection for each request.")
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
        """Close the connection."""
        self._ended = True
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection: an answer that is still to come would be taken for that of the next request."""
        self._ended = True
        self._transport.abort()

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer, or bytes nobody asked for."""
        self._begun = True
        self._wire.receive_data(data)
        self._take_event()

    def eof_received(self) -> None:
        """The server sends no more."""
        self._end()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
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
        """Whether the kernel holds bytes or an end of stream that the loop has not passed on yet."""
        fileno: int = self._transport.get_extra_info("socket").fileno()
        if fileno < 0 or not hasattr(select, "poll"):
            return fileno < 0
        poll = select.poll()
        poll.register(fileno, select.POLLIN)
        return len(poll.poll(0)) > 0
