"""Addresses: a host and a port to listen on or connect to, and the locator of a service (core 3)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.principal import is_canonical_id

DEFAULT_PORT: Final = 4480  # the TCP port of AGTP (core 1)
HTTP_PORT: Final = 8080  # the default port of HTTP; unlike 80, it needs no privileges
OPERATIONS_PORT: Final = 9464  # the default port of health and metrics: that of Prometheus exporters
_PORT: Final = re.compile("[0-9]+")
_HOST: Final = re.compile(r"[^\s/@\[\]]*|\[[^\s/@\[\]]+\]")
_NETWORK_PLACE: Final = re.compile(r"(?:[^@]*@)?(?:\[[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
"""User, host and port of an address. Brackets hold the whole host, or there are none (RFC 3986, 3.2)."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def overlaps(self, other: Address) -> bool:
        """Return True if a process cannot listen on both: same port, and the hosts are not two distinct addresses."""
        if self.port != other.port:
            return False
        try:
            hosts = {ipaddress.ip_address(self.host), ipaddress.ip_address(other.host)}
        except ValueError:
            return True  # a name may resolve to any address
        return len(hosts) == 1 or any(host.is_unspecified for host in hosts)


def parse_address(text: str, default: int = DEFAULT_PORT) -> Address:
    """Parse `HOST:PORT`, `HOST`, `:PORT` or `[IPv6]:PORT`; use the port `default` if there is none."""
    if _PORT.fullmatch(text):
        raise ConfigError(f"{text!r} is not a valid address: write :{text} for a port of this machine")
    if "://" in text:
        raise ConfigError(f"{text[:80]!r} is not a valid address: write HOST:PORT, without a scheme")
    bracketed = text.endswith("]") or ":" not in text
    host, _, port = (text, "", "") if bracketed else text.rpartition(":")
    if ":" in host and not host.startswith("["):
        raise ConfigError(f"{text!r} is not a valid address: write an IPv6 host in brackets, [::1]:{default}")
    if _HOST.fullmatch(host) is None:
        raise ConfigError(f"{text[:80]!r} is not a valid address: write HOST:PORT, :PORT or [IPv6]:PORT")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        raise ConfigError(
            f"{text[:80]!r} is not a valid address: the port is a number from 0 to 65535, not {port[:80]!r}"
        )
    return Address(host, int(port) if port else default)


def split_url(text: str) -> SplitResult:
    """Split an address, or raise ValueError. `urlsplit` takes `::1` for the host of `http://[::1].evil.example`."""
    parts = urlsplit(text)
    if _NETWORK_PLACE.fullmatch(parts.netloc) is None:
        raise ValueError(f"{parts.netloc!r} is not a valid host and port")
    return parts


# Core 3:  form 2   agtp://host[:port]
#          form 1a  agtp://agent-id@host[:port]
_URI: Final = re.compile(
    r"agtp://(?:(?P<agent>[^@/?#]*)@)?(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?/?"
)
AUTHORITY: Final = re.compile(r"agtp://(?:[^@/?#]*+@)?(?P<host>\[[^\]/?#]*+\]|[^:/?#]*+)(?::(?P<port>[0-9]{1,5}))?")
"""Where a document says that AGTP is spoken, as far as it can be read; `parse_uri` is strict."""


@dataclass(frozen=True, slots=True)
class Locator:
    """Host and port, and the agent at that host, if any."""

    host: str
    port: int = DEFAULT_PORT
    agent_id: str | None = None
    web: str | None = None  # web address, `https://host/prefix`; None for AGTP's own transport

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)

    def __str__(self) -> str:
        if self.web is not None:
            return self.web
        agent = f"{self.agent_id}@" if self.agent_id else ""
        return f"agtp://{agent}{self.address}"


def is_web(uri: str) -> bool:
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
    try:
        ipaddress.IPv6Address(six or "::")
    except ValueError:
        raise _unusable(uri, "has brackets around a host that is not a valid IPv6 address") from None
    if port is not None and not 0 < int(port) < 65536:
        raise _unusable(uri, "has a port outside 1 to 65535")
    return Locator(six or match["host"], int(port) if port else DEFAULT_PORT, agent)


def _unusable(uri: str, reason: str) -> ConfigError:
    return ConfigError(f"{uri[:120]!r} {reason}.")
