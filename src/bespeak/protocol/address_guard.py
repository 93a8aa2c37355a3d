"""Guard against server-side request forgery: addresses named by a document must be public."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass
from typing import Final

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Function that resolves a name to addresses. Raises OSError if there are none."""

_MOST: Final = 4
"""Maximum number of addresses to try per name."""
_LOCAL_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa")
"""Names with a local meaning on every machine or network (RFC 6761, 6762, 8375)."""
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
        "a documentation network": (
            *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
            *("2001:db8::/32", "3fff::/20"),
        ),
        "a multicast group": ("224.0.0.0/4", "ff00::/8"),
        "a reserved network": (
            *("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4"),
            *("100::/64", "2001::/23", "5f00::/16"),
        ),
    }.items()
}
"""Networks of the registries of special addresses (RFC 6890), by what an address in them is."""
_GLOBAL: Final = ipaddress.ip_network("2000::/3")
"""The only range of IPv6 allocated for public use."""
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.ip_network("::/96")


@dataclass(frozen=True, slots=True)
class BlockedAddress:
    """Reason why a connection to a host is not allowed."""

    message: str
    found: bool = True
    """True if the name resolves."""


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
    """Parse a host that is an IP address in any form that resolvers accept: `127.1`, `0x7f000001`, `2130706433`.

    Returns None for a name.
    """
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
    """Return True if a host is a loopback name or address."""
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
            if not free and _is_local_name(host):
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
    """Return what a guard allows for an address that the user typed."""
    return frozenset({(_plain(host), port)})


async def system_resolve(host: str, port: int) -> list[str]:
    """Resolve a name with the system's resolver.

    It runs in a thread of its own. A loop waits for its executor when it closes, so a name server that does not answer
    would delay the end of a command beyond every deadline.
    """
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


def _is_local_name(host: str) -> bool:
    plain = _plain(host)
    return plain == "localhost" or plain.endswith(_LOCAL_NAMES) or "." not in plain


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address: mapped, compatible, NAT64, 6to4 or ISATAP."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    number = int(address)
    if address in _NAT64 or (address in _COMPATIBLE and number > 1):
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if (number >> 32) & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return None
