"""Pool of connections to one server."""

from __future__ import annotations

import asyncio
import ssl as tls

from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.wire.limits import RESPONSE_LIMITS, Limits
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.protocol.wire.writer import Pairs


class Pool:
    """Pool of at most `size` connections, last used first. Servers may close after each reply."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        ssl: tls.SSLContext | None = None,
        size: int = 10,
        connect_timeout: float = 10.0,
        read_timeout: float | None = None,
        limits: Limits = RESPONSE_LIMITS,
    ) -> None:
        self._host = host
        self._port = port
        self._ssl = ssl
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._limits = limits
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
            kept = self._take()
            if kept is not None:
                try:
                    return await self._exchange(kept, method, target, headers, body)
                except ConnectionResetError:
                    if not retry:
                        raise
            fresh = await AgtpClientConnection.open(
                self._host, self._port, ssl=self._ssl, limits=self._limits, connect_timeout=self._connect_timeout
            )
            return await self._exchange(fresh, method, target, headers, body)

    async def close(self) -> None:
        """Close the idle connections. Requests in progress finish."""
        while self._idle:
            self._idle.pop().close()

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
        try:
            response = await connection.request(method, target, headers, body, read_timeout=self._read_timeout)
        except BaseException:
            connection.abort()
            raise
        if connection.is_reusable:
            self._idle.append(connection)
        else:
            connection.close()
        return response
