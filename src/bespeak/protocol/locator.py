"""Address of a service: an agtp URI that names a host (core 3), or a web address."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from bespeak.errors import ConfigError
from bespeak.protocol.address import DEFAULT_PORT, Address
from bespeak.protocol.exchange.principal import is_canonical_id

# Core 3:  form 2   agtp://host[:port]
#          form 1a  agtp://agent-id@host[:port]
_URI: Final = re.compile(
    r"agtp://(?:(?P<agent>[^@/?#]*)@)?(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?/?"
)


@dataclass(frozen=True, slots=True)
class Locator:
    """Host and port, and the agent at that host, if any."""

    host: str
    port: int = DEFAULT_PORT
    agent_id: str | None = None
    web: str | None = None
    """Web address, `https://host/prefix`; None for AGTP's own transport."""

    @property
    def address(self) -> Address:
        """Address to connect to."""
        return Address(self.host, self.port)

    def __str__(self) -> str:
        if self.web is not None:
            return self.web
        agent = f"{self.agent_id}@" if self.agent_id else ""
        return f"agtp://{agent}{self.address}"


def is_web(uri: str) -> bool:
    """Return True for a web address."""
    return uri[:8].lower().startswith(("https://", "http://"))


def parse_uri(uri: str) -> Locator:
    """Parse an agtp URI. Raises ConfigError if it does not name a host to connect to."""
    match = _URI.fullmatch(uri)
    if match is None:
        if is_canonical_id(uri.removeprefix("agtp://")):
            raise _unusable(uri, "names an agent but no host; use agtp://<agent-id>@host")
        raise _unusable(uri, "is not of the form agtp://host[:port] or agtp://<agent-id>@host[:port]")
    agent, six, port = match["agent"], match["six"], match["port"]
    if agent is not None and not is_canonical_id(agent):
        raise _unusable(uri, "has an agent id that is not 64 lower-case hexadecimal digits")
    if agent is None and is_canonical_id(match["host"] or ""):
        raise _unusable(uri, "names an agent but no host; use agtp://<agent-id>@host")
    if six is not None and not _is_ipv6(six):
        raise _unusable(uri, "has brackets around a host that is not a valid IPv6 address")
    if port is not None and not 0 < int(port) < 65536:
        raise _unusable(uri, "has a port outside 1 to 65535")
    return Locator(six or match["host"], int(port) if port else DEFAULT_PORT, agent)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _unusable(uri: str, reason: str) -> ConfigError:
    return ConfigError(f"{uri[:120]!r} {reason}.")
