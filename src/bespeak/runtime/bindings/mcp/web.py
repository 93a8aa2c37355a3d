"""An MCP server on the web: streamable HTTP with bounded answers, and its refusal of our credential as an error."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from bespeak.runtime.bindings.upstream_outcome import MAX_RESPONSE_BYTES
from bespeak.runtime.bindings.upstream_pool import system_trust

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

NOT_ACCEPTED: Final = -32902
"""Code of our own error for HTTP 401 and 403."""
_REFUSING: Final = frozenset({httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN})
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)
"""A server may hold a stream open; each call has a deadline of its own."""


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
            response.stream = _Bounded(response.stream)
        return response


def _error(status: int, code: int, message: str) -> httpx2.Response:
    """Return an answer that the SDK passes on as the error of the request."""
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


class _Bounded(httpx2.AsyncByteStream):
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
