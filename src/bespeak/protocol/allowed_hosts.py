"""Hosts and networks that an operator allows connections to, although they are private."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from bespeak.errors import ConfigError
from bespeak.protocol.address import parse_address
from bespeak.protocol.address_guard import IpNetwork, literal_address

_ANY_PORT: Final = 0


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
        plain = host.lower().strip("[]").removesuffix(".")
        if (plain, port) in self._hosts or (plain, _ANY_PORT) in self._hosts:
            return True
        literal = literal_address(plain)
        return literal is not None and any(literal in network for network in self.networks)


def parse_allowed(text: str) -> tuple[str, int] | IpNetwork:
    """Parse one entry. Raises ConfigError if it is not valid."""
    if "/" in text:
        try:
            return ipaddress.ip_network(text)
        except ValueError as error:
            raise ConfigError(f"{text[:80]!r} is not a valid network: {error}") from error
    address = parse_address(text, _ANY_PORT)
    if not text or text.startswith(":"):
        raise ConfigError(f"{text[:80]!r} names no host: write HOST, HOST:PORT or a network such as 10.0.0.0/8")
    return address.host.lower().removesuffix("."), address.port
