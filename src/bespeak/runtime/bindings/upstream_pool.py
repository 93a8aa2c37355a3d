"""Connections to upstreams, shared by endpoints with the same host."""

from __future__ import annotations

import asyncio
import ssl
import sys
from functools import cache
from typing import Final

import httpx

_UNLIMITED: Final = 10_000
_LIMITS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)


class UpstreamPool:
    """One transport for each host and port.

    Transports rather than clients: a client stores the cookies an upstream sets, which would share one caller's session
    with another, and logs every URL with its query.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, most: int | None = None) -> None:
        """Create a pool for `most` calls at one time; by default an eighth of the files that this process may open."""
        self._tls = tls
        self.places = asyncio.Semaphore(_most_calls() if most is None else most)
        """Places for calls to all hosts: upstreams must not use up the descriptors that handlers need for files."""
        self._transports: dict[tuple[str, str, int | None], httpx.AsyncHTTPTransport] = {}

    def transport(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        """Return the connections to the host of a URL; none is opened before the first call."""
        key = (url.scheme, url.host, url.port)
        found = self._transports.get(key)
        if found is None:
            tls = self._tls or system_trust()
            found = self._transports[key] = httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=_LIMITS)
        return found

    async def aclose(self) -> None:
        """Close the pooled connections. A later call opens new ones."""
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()


def _most_calls() -> int:
    if sys.platform == "win32":
        return _UNLIMITED
    import resource  # noqa: PLC0415 - not on Windows

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _UNLIMITED if files == resource.RLIM_INFINITY else max(1, files // 8)


@cache
def system_trust() -> ssl.SSLContext:
    """Load the operating system's trust store, where operators add their own CAs; once, because it is slow."""
    return ssl.create_default_context()
