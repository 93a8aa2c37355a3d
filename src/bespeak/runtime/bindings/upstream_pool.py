"""Connections to upstreams, shared by the endpoints that lead to the same one."""

from __future__ import annotations

import ssl
from functools import cache
from typing import Final

import httpx

_LIMITS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)


class UpstreamPool:
    """One transport for each host and port.

    A transport and no client: a client keeps the cookies an upstream sets, so that one caller's session would be
    another's, and writes every URL with its query into the log.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._transports: dict[tuple[str, str, int | None], httpx.AsyncHTTPTransport] = {}

    def transport(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        """The connections to the host of a URL; none is opened before the first call."""
        key = (url.scheme, url.host, url.port)
        found = self._transports.get(key)
        if found is None:
            tls = self._tls or _system_trust()
            found = self._transports[key] = httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=_LIMITS)
        return found

    @property
    def hosts(self) -> int:
        """How many upstreams there are connections to."""
        return len(self._transports)

    async def aclose(self) -> None:
        """Close the kept connections. A call that comes later opens new ones."""
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()


@cache
def _system_trust() -> ssl.SSLContext:
    """The operating system's trust store, where an operator adds a CA of their own; loading it is slow, so once."""
    return ssl.create_default_context()
