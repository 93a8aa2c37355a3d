"""Guard against server-side request forgery: a name is resolved and checked once, and the result is connected to."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar
from urllib.parse import urljoin

from bespeak.errors import ConfigError
from bespeak.protocol.address import parse_address, split_url

if TYPE_CHECKING:
    import httpx

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver = Callable[[str, int], Awaitable[list[str]]]  # resolves a name; raises OSError if it has no address
_MOST: Final = 4  # maximum number of addresses to try per name
_LOCAL_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa")  # local names (RFC 6761, 6762, 8375)
_REFUSED: Final = {
    what: tuple(ipaddress.ip_network(network) for network in networks)
    for what, networks in {
        "this machine": ("127.0.0.0/8", "::1/128"),
        "this network": ("0.0.0.0/8", "::/128"),
        "a link-local address": ("169.254.0.0/16", "fe80::/10"),
        "a private network": (
            *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
            *("64:ff9b:1::/48", "fc00::/7", "fec0::/10"),
        ),
        "a carrier network": ("100.64.0.0/10",),
        "a benchmarking network": ("198.18.0.0/15",),
        "a documentation network": ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
        "a multicast group": ("224.0.0.0/4", "ff00::/8"),
        "a reserved network": ("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "100::/64", "2001::/23", "5f00::/16"),
    }.items()
}  # networks of the registries of special addresses (RFC 6890), by what an address in them is
_GLOBAL: Final = ipaddress.ip_network("2000::/3")  # the only range of IPv6 allocated for public use
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.ip_network("::/96")


@dataclass(frozen=True, slots=True)
class BlockedAddress:
    """Reason why a connection to a host is not allowed."""

    message: str
    found: bool = True  # True if the name resolves


def what_is_private(address: IpAddress) -> str | None:
    """Describe the network of an address that is not public; return None for a public address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return what_is_private(inner)
    for what, networks in _REFUSED.items():
        if any(address in network for network in networks):
            return what
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL:
        return "a reserved network"
    return None


def literal_address(host: str) -> IpAddress | None:
    """Parse an IP address in any form that resolvers accept: `127.1`, `0x7f000001`; None for a name."""
    bare = host.strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        pass
    if bare and all(part[:1].isdigit() for part in bare.removesuffix(".").split(".")):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(bare.removesuffix(".")))
        except (OSError, UnicodeError):
            return None
    return None


def is_loopback(host: str) -> bool:
    address = literal_address(host)
    return address.is_loopback if address is not None else host.lower().removesuffix(".") == "localhost"


class AddressGuard:
    """Resolves a host once and returns the allowed addresses; connections must use exactly these.

    The host and port that the user typed, and all hosts with `allow_private`, may be private. Another port of the same
    host is another service: neither a redirect nor a document may lead to it.
    """

    def __init__(
        self,
        typed: Container[tuple[str, int]] = (),
        *,
        allow_private: bool = False,
        networks: Sequence[IpNetwork] = (),
        resolve: Resolver | None = None,
    ) -> None:
        """Create a guard; `typed` has what `typed_host` returns. A name may resolve into one of the `networks` too."""
        self._typed = typed
        self._networks = networks
        self._allow_private = allow_private
        self._resolve = resolve or system_resolve

    async def addresses(self, host: str, port: int) -> list[str] | BlockedAddress:
        """Resolve a host; return its addresses, or why they are blocked."""
        free = self._allow_private or (_plain(host), port) in self._typed
        literal = literal_address(host)
        if literal is None:
            plain = _plain(host)
            if not free and (plain == "localhost" or plain.endswith(_LOCAL_NAMES) or "." not in plain):
                return BlockedAddress(f"{host[:120]!r} is a private network name")
            try:
                found = await self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                return BlockedAddress(f"the name {host[:120]!r} cannot be resolved: {reason}", found=False)
        else:
            found = [str(literal)]
        if not found:
            return BlockedAddress(f"the name {host[:120]!r} has no address", found=False)
        if not free:
            # One private address blocks the name: otherwise DNS rebinding could reach it by retrying.
            for text in found:
                address = ipaddress.ip_address(text.partition("%")[0])
                what = what_is_private(address)
                if what is not None and not any(address in network for network in self._networks):
                    named = "" if literal is not None else f" has the address {text}, which"
                    return BlockedAddress(f"{host[:120]!r}{named} is {what}")
        return found[:_MOST]


def typed_host(host: str, port: int) -> frozenset[tuple[str, int]]:
    return frozenset({(_plain(host), port)})


async def system_resolve(host: str, port: int) -> list[str]:
    """Resolve a name in a thread of its own: a loop that closes waits for its executor, beyond every deadline."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def deliver(found: list[str] | Exception) -> None:
        if not answer.done():
            answer.set_exception(found) if isinstance(found, Exception) else answer.set_result(found)

    def look_up() -> None:
        found: list[str] | Exception
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except (OSError, UnicodeError) as error:
            found = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, found)

    threading.Thread(target=look_up, name="bespeak-resolver", daemon=True).start()
    return await answer


def _plain(host: str) -> str:
    return host.lower().strip("[]").removesuffix(".")


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address: mapped, compatible, NAT64, 6to4 or ISATAP."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    number = int(address)
    isatap = (number >> 32) & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE)
    if isatap or address in _NAT64 or (address in _COMPATIBLE and number > 1):
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return None


class AllowedHosts:
    """A list of `host`, `host:port` and networks such as `10.0.0.0/8`. Contains pairs of a host and a port."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """Parse the entries. Raises ConfigError for one that is not valid."""
        found = [parse_allowed(entry) for entry in entries]
        self.networks: tuple[IpNetwork, ...] = tuple(one for one in found if not isinstance(one, tuple))
        self._hosts = frozenset(one for one in found if isinstance(one, tuple))

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple):
            return False
        host, port = item
        plain = _plain(host)
        if (plain, port) in self._hosts or (plain, 0) in self._hosts:  # 0 is any port
            return True
        literal = literal_address(plain)
        return literal is not None and any(literal in network for network in self.networks)


def parse_allowed(text: str) -> tuple[str, int] | IpNetwork:
    if "/" in text:
        try:
            return ipaddress.ip_network(text)
        except ValueError as error:
            raise ConfigError(f"{text[:80]!r} is not a valid network: {error}") from error
    address = parse_address(text, default=0)
    if not text or text.startswith(":"):
        raise ConfigError(f"{text[:80]!r} names no host: write HOST, HOST:PORT or a network such as 10.0.0.0/8")
    return address.host.lower().removesuffix("."), address.port


_PORTS: Final = {"https": 443, "http": 80}
_LONGEST: Final = 2048
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")  # a name or IPv4, or IPv6 without its brackets


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: the scope of a credential."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if _PORTS[self.scheme] == self.port else f":{self.port}")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Address with valid syntax that may be fetched."""

    origin: Origin
    target: str  # Path and query; at least `/`. Fragments are removed.

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"


@dataclass(frozen=True, slots=True)
class AddressFault:
    """Reason why an address is not valid or not allowed."""

    kind: Literal["address", "scheme", "credentials", "plain"]
    message: str

    def __str__(self) -> str:
        advice = " Use insecure=True (--insecure) to allow it." if self.kind == "plain" else ""
        return f"{self.message}.{advice}"


def parse_web_address(text: str, *, insecure: bool = False) -> WebAddress | AddressFault:
    """Parse an address. Plain http is allowed on this machine, or with `insecure`."""
    shown = f"{text[:80]!r}"
    if len(text) > _LONGEST:
        return AddressFault("address", f"{shown} is longer than {_LONGEST} characters")
    if any(ord(character) <= 0x20 or ord(character) == 0x7F or character == "\\" for character in text):
        return AddressFault("address", f"{shown} contains characters that are not allowed in an address")
    try:
        parts = split_url(text)
        port = parts.port
        host = (parts.hostname or "").encode("idna" if not text.isascii() else "ascii").decode()
    except (ValueError, UnicodeError):
        return AddressFault("address", f"{shown} is not a valid address")
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        return AddressFault("scheme", f"{shown} is not an https address")
    if "@" in parts.netloc:
        return AddressFault("credentials", "an address must not contain a user name or password")
    if host and _HOST.fullmatch(host) is None:
        return AddressFault("address", f"{shown} contains characters that are not allowed in a host name")
    if not host or port == 0:
        return AddressFault("address", f"{shown} has no host" if not host else f"{shown} has no valid port")
    if scheme == "http" and not (insecure or is_loopback(host)):
        return AddressFault("plain", f"{shown} is plain http, which is not secure")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.isascii():
        return AddressFault("address", f"{shown} contains characters that are not allowed in an address")
    return WebAddress(Origin(scheme, host, port or _PORTS[scheme]), target)


def resolve_address(text: str, base: WebAddress, *, insecure: bool = False) -> WebAddress | AddressFault:
    try:
        whole = urljoin(str(base), text)
    except ValueError:
        return AddressFault("address", f"{text[:80]!r} is not a valid address")
    return parse_web_address(whole, insecure=insecure)


ErrorT = TypeVar("ErrorT", bound=BaseException)
_PINNED_FOR: Final = 60.0  # seconds after which a name is resolved and checked again
_MOST_ORIGINS: Final = 64
_QUOTES: Final = re.compile("Protocol|Decod")  # exceptions of HTTP that quote what could not be read


class BlockedAddressError(OSError):
    """Connection to a host that is blocked or does not resolve."""

    def __init__(self, blocked: BlockedAddress) -> None:
        self.blocked = blocked
        super().__init__(blocked.message)


def describe_failure(error: BaseException) -> str:
    """Describe a failed exchange for a log. Only texts of the operating system quote nothing of the peer."""
    kind, module = type(error).__name__, type(error).__module__.partition(".")[0]
    if module == "smtplib":
        return f"{kind} {getattr(error, 'smtp_code', '')}".strip()
    is_plain = isinstance(error, OSError) or (module in ("httpx", "httpcore") and not _QUOTES.search(kind))
    return f"{kind}: {str(error)[:300]}" if is_plain and str(error) else kind


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
    """Load the authorities of the operating system, where operators add their own; once, because it is slow."""
    return ssl.create_default_context()


def find_cause(error: BaseException, kind: type[ErrorT]) -> ErrorT | None:
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, kind):
            return behind
        behind = behind.__cause__ or behind.__context__
    return None
