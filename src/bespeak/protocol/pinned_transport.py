"""HTTP transport with pinned addresses: a name is resolved and checked once, and the connection uses the result."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import AddressGuard, BlockedAddress
from bespeak.protocol.web_address import Origin, WebAddress

if TYPE_CHECKING:
    import httpx

ErrorT = TypeVar("ErrorT", bound=BaseException)

_PINNED_FOR: Final = 60.0
"""Seconds after which a name is resolved and checked again."""
_MOST_ORIGINS: Final = 64
_LONGEST: Final = 300
"""Maximum characters of the text of an exception in a log."""
_QUOTES: Final = re.compile("Protocol|Decod")
"""Exceptions of HTTP that quote what could not be read."""


class BlockedAddressError(OSError):
    """Connection to a host that is blocked or does not resolve."""

    def __init__(self, blocked: BlockedAddress) -> None:
        self.blocked = blocked
        super().__init__(blocked.message)


def describe_failure(error: BaseException) -> str:
    """Describe a failed exchange for a log, without what the peer has sent.

    The texts of most exceptions quote it: the line of a header that is not valid, a reply with an address. Those of the
    operating system do not.
    """
    kind, module = type(error).__name__, type(error).__module__.partition(".")[0]
    if module == "smtplib":
        return f"{kind} {getattr(error, 'smtp_code', '')}".strip()
    is_plain = isinstance(error, OSError) or (module in ("httpx", "httpcore") and not _QUOTES.search(kind))
    return (f"{kind}: {str(error)[:_LONGEST]}" if str(error) else kind) if is_plain else kind


class PinnedTransport:
    """Sends requests without cookies, redirects, proxies or credentials of this machine."""

    def __init__(self, guard: AddressGuard, tls: ssl.SSLContext | None = None, *, keep: int = 0) -> None:
        self._guard = guard
        self._tls = tls
        self._keep = keep
        # Each origin has its own connections: two names at one address must not share one.
        self._origins: dict[Origin, httpx.AsyncHTTPTransport] = {}
        self._pins: dict[Origin, tuple[float, list[str]]] = {}

    async def send(
        self, method: str, address: WebAddress, headers: Mapping[str, str], body: bytes = b""
    ) -> httpx.Response:
        """Send a request; the caller reads and closes the response. Raises httpx.TransportError or OSError."""
        import httpx  # noqa: PLC0415 - slow to load, and a client of AGTP does without

        origin = address.origin
        try:
            target = address.target.encode("ascii")
            whole = {"Host": str(origin).partition("://")[2], **headers}
            lines = [(name.encode("ascii"), value.encode("latin-1")) for name, value in whole.items()]
        except UnicodeEncodeError as error:
            raise httpx.LocalProtocolError(f"{error.object[:80]!r} has characters that HTTP cannot send") from error
        transport = self._transport(origin)
        refused: httpx.ConnectError | None = None
        for host in await self._addresses(origin):
            bare = f"[{host}]" if ":" in host else host
            request = httpx.Request(
                method,
                f"{origin.scheme}://{bare}:{origin.port}/",
                headers=lines,
                content=body,
                # The target is sent unchanged: normalising its dots would change the resource.
                extensions={"sni_hostname": origin.host, "target": target},
            )
            try:
                return await transport.handle_async_request(request)
            except httpx.ConnectError as error:
                if find_cause(error, ssl.SSLError) is not None:
                    raise
                refused = error
        assert refused is not None
        raise refused

    async def close(self) -> None:
        """Close the pooled connections."""
        for transport in self._origins.values():
            await transport.aclose()
        self._origins.clear()

    async def _addresses(self, origin: Origin) -> list[str]:
        known = self._pins.get(origin)
        now = time.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        found = await self._guard.addresses(origin.host, origin.port)
        if isinstance(found, BlockedAddress):
            raise BlockedAddressError(found)
        self._pins[origin] = (now + _PINNED_FOR, found)
        return found

    def _transport(self, origin: Origin) -> httpx.AsyncHTTPTransport:
        import httpx  # noqa: PLC0415 - as above

        found = self._origins.get(origin)
        if found is None:
            if len(self._origins) >= _MOST_ORIGINS:
                raise OSError(f"at most {_MOST_ORIGINS} hosts can be contacted")
            limits = httpx.Limits(max_connections=max(self._keep, 8), max_keepalive_connections=self._keep)
            tls = self._tls or system_trust()
            found = self._origins[origin] = httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)
        return found


def trust(
    ca_file: str | Path | None = None, *, cert: str | Path | None = None, key: str | Path | None = None
) -> ssl.SSLContext:
    """Create TLS settings with the system's authorities or those of a file, and an optional client certificate."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot read certificate authorities from {ca_file}: {error}.") from error
    if cert is not None:
        try:
            context.load_cert_chain(cert, key, lambda: b"")
        except (OSError, ValueError) as error:
            raise ConfigError(f"Cannot use certificate {cert} with key {key or cert}: {error}.") from error
    return context


@cache
def system_trust() -> ssl.SSLContext:
    """Load the system's authorities, once because it is slow."""
    return ssl.create_default_context()


def find_cause(error: BaseException, kind: type[ErrorT]) -> ErrorT | None:
    """Find the first error of a type in a chain of causes."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, kind):
            return behind
        behind = behind.__cause__ or behind.__context__
    return None
