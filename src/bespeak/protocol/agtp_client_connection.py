"""Client side of one AGTP connection, one request at a time."""

from __future__ import annotations

import asyncio
import select
import ssl as tls
from collections.abc import AsyncGenerator
from typing import Final, cast

from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.exchange.headers import CONTINUATION_TOKEN
from bespeak.protocol.wire.connection import ClientConnection, Pairs
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, RESPONSE_LIMITS, Limits, ResponseMessage

_CONTINUED: Final = CONTINUATION_TOKEN.lower()
_BUFFERED: Final = 262_144  # bytes of a stream that wait to be read, above which reading pauses


class AgtpClientConnection(asyncio.Protocol):
    """AGTP connection, created by `open`. It is closed after an error; check `is_reusable` before the next request."""

    def __init__(self, address: str, limits: Limits) -> None:
        self._address = address
        self._wire = ClientConnection(limits)
        self._answer: asyncio.Future[ResponseMessage] | None = None
        self._begun = False  # bytes of the current answer have arrived
        self._ended = False
        self._streaming = False  # more messages of the same answer are awaited
        self._held = False  # reading is paused: messages arrive faster than they are read

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

    async def stream(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, read_timeout: float | None = None
    ) -> AsyncGenerator[ResponseMessage]:
        """Send a request and yield the messages of its answer: all but the last one have a Continuation-Token.

        `read_timeout` is the time to the next message. A stream that is not read to its end drops the connection.
        """
        self._streaming = True
        try:
            message = await self.request(method, target, headers, body, read_timeout=read_timeout)
            while _CONTINUED in message.headers:
                yield message
                message = await self._next(method, target, read_timeout)
            self._streaming = False
        finally:
            if self._streaming:
                self.abort()
        yield message

    async def _next(self, method: str, target: str, read_timeout: float | None) -> ResponseMessage:
        self._wire.awaited += 1
        answer: asyncio.Future[ResponseMessage] = asyncio.get_running_loop().create_future()
        self._answer = answer
        try:
            async with asyncio.timeout(read_timeout):
                self._take_event(ended=self._ended)
                if self._held:
                    self._held = False
                    self._transport.resume_reading()
                return await answer
        except TimeoutError as error:
            message = f"{self._address} sent nothing more of {method} {target[:80]} within {read_timeout:g} seconds."
            raise TimeoutError(message) from error
        finally:
            self._answer = None

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
        if self._streaming and (self._answer is None or self._answer.done()):
            if self._wire.buffered > _BUFFERED and not self._held:
                self._held = True
                self._transport.pause_reading()
            return
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
            if not self._streaming or self._answer is not None:
                self._take_event()

    def _take_event(self, *, ended: bool = False) -> None:
        event = self._wire.next_event()
        if event is NEED_DATA and not ended:
            return
        if isinstance(event, ResponseMessage):
            self._resolve(event)
        elif event in (CLOSED, NEED_DATA) or not self._begun:
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
