"""Whom a browser may call for: pages of other sites, and names that were bent to point at this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from bespeak.protocol.address import Address

_LONGEST: Final = 300
"""Of a host or an origin; a name of DNS has 253 characters at most."""
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[^\s/?#\\@]+")
"""A host and its port. Whoever splits addresses finds a host in more than that: `localhost#.evil.example`."""


class Forbidden(NamedTuple):
    """Why a browser's request is not carried out."""

    status: int
    code: str
    message: str


class Origins:
    """What is known of the places a browser may come from, and of the names of this service.

    Who is no browser sends no Origin and is not concerned. A Host is looked at where the service listens on this
    machine alone: a page whose name was made to point at 127.0.0.1 (DNS rebinding) still says its own name there.
    """

    def __init__(self, *, url: str | None = None, allowed: tuple[str, ...] = (), loopback: bool = False) -> None:
        self._own = _place(url) if url is not None else None
        self._everybody = "*" in allowed
        self._allowed = frozenset(place for place in map(_place, allowed) if place is not None)
        self._loopback = loopback
        self._served = lru_cache(64)(self._is_served)
        self._admitted = lru_cache(256)(self._is_admitted)

    def check_host(self, headers: Mapping[str, str]) -> Forbidden | None:
        """421 for a host that is none of this service."""
        host = headers.get("host")
        if not self._loopback or host is None or (len(host) <= _LONGEST and self._served(host)):
            return None
        message = (
            f"This service answers on this machine only, not as {host[:80]!r}; "
            "call it at localhost, or name its public address in [http] url."
        )
        return Forbidden(421, "host-not-served", message)

    def check_origin(self, headers: Mapping[str, str]) -> Forbidden | None:
        """403 for a page of a site that is neither this one nor one of those that are let in."""
        origin = headers.get("origin")
        if origin is None or self._everybody:
            return None
        if len(origin) <= _LONGEST and self._admitted(origin, headers.get("host", "")[:_LONGEST]):
            return None
        message = f"Pages of {origin[:80]!r} may not call this service; its operator can let them, in [http] cors."
        return Forbidden(403, "origin-not-allowed", message)

    def _is_served(self, host: str) -> bool:
        found = _place(f"http://{host}")
        if found is None or not _NAME.fullmatch(host):
            return False
        name = found[1]
        return Address(name, 0).is_loopback or (self._own is not None and name == self._own[1])

    def _is_admitted(self, origin: str, host: str) -> bool:
        place = _place(origin)
        # `null` is no place, among others: a sandboxed page, a file.
        if place is None or not _NAME.fullmatch(origin.partition("://")[2]):
            return False
        # A proxy may have ended TLS, so that the scheme here is not the one the page knows.
        return place in self._allowed or place == self._own or place == _place(f"{place[0]}://{host}")


def _place(text: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None for what is none."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if host is None or parts.scheme not in _PORTS or "@" in parts.netloc:
        return None
    return parts.scheme, host.lower(), _PORTS[parts.scheme] if port is None else port
