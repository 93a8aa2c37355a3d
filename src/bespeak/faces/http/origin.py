"""Protection against cross-site requests and DNS rebinding: checks of `Origin` and `Host`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.protocol.address import Address, split_url

_LONGEST: Final = 300
"""Maximum characters of a host or an origin; a DNS name has 253 at most."""
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[^\s/?#\\@]+")
"""A host and its port. URL parsers accept more than that as a host: `localhost#.evil.example`."""


class Forbidden(NamedTuple):
    """The refusal of a browser's request."""

    status: int
    code: str
    message: str


class Origins:
    """The allowed origins, and the host names of this service.

    Clients other than browsers send no Origin and are not affected. Host is checked if the service listens on loopback
    only: a page whose name was made to resolve to 127.0.0.1 (DNS rebinding) still sends its own name there.
    """

    def __init__(self, *, url: str | None = None, allowed: tuple[str, ...] = (), loopback: bool = False) -> None:
        self._own = _place(url) if url is not None else None
        self._everybody = "*" in allowed
        self._allowed = frozenset(place for place in map(_place, allowed) if place is not None)
        self._loopback = loopback
        self._served = lru_cache(64)(self._is_served)
        self._admitted = lru_cache(256)(self._is_admitted)

    def check_host(self, headers: Mapping[str, str]) -> Forbidden | None:
        """Return a 421 if the host does not belong to this service."""
        host = headers.get("host")
        if not self._loopback or host is None or (len(host) <= _LONGEST and self._served(host)):
            return None
        message = (
            f"This service answers only on this machine, not as {host[:80]!r}; "
            "call it at localhost, or set its public address in [http] url."
        )
        return Forbidden(421, "host-not-served", message)

    def check_origin(self, headers: Mapping[str, str]) -> Forbidden | None:
        """Return a 403 if the page's origin is neither this service nor an allowed one."""
        origin = headers.get("origin")
        if origin is None or self._everybody:
            return None
        if len(origin) <= _LONGEST and self._admitted(origin, headers.get("host", "")[:_LONGEST]):
            return None
        message = f"Pages of {origin[:80]!r} may not call this service; the operator can allow it in [http] cors."
        return Forbidden(403, "origin-not-allowed", message)

    def _is_served(self, host: str) -> bool:
        found = _place(f"http://{host}")
        if found is None or not _NAME.fullmatch(host):
            return False
        name = found[1]
        return Address(name, 0).is_loopback or (self._own is not None and name == self._own[1])

    def _is_admitted(self, origin: str, host: str) -> bool:
        place = _place(origin)
        # `null`, the origin of sandboxed pages and files, for example, is not a valid origin.
        if place is None or not _NAME.fullmatch(origin.partition("://")[2]):
            return False
        # A proxy may have terminated TLS, so the scheme here may differ from that of the page.
        return place in self._allowed or place == self._own or place == _place(f"{place[0]}://{host}")


def _place(text: str) -> tuple[str, str, int] | None:
    """Parse an origin into scheme, host and port; return None if it is not valid."""
    try:
        parts = split_url(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if host is None or parts.scheme not in _PORTS or "@" in parts.netloc:
        return None
    return parts.scheme, host.lower(), _PORTS[parts.scheme] if port is None else port
