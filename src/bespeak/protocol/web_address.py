"""Web address that may be fetched: https, a host, no credentials; relative addresses are resolved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urljoin

from bespeak.protocol.address import split_url
from bespeak.protocol.address_guard import is_loopback

_PORTS: Final = {"https": 443, "http": 80}
_LONGEST: Final = 2048
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
"""Name or IPv4 address, or an IPv6 address without its brackets."""


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
    target: str
    """Path and query; at least `/`. Fragments are removed."""

    @property
    def path(self) -> str:
        """Target without the query."""
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


def parse_address(text: str, *, insecure: bool = False) -> WebAddress | AddressFault:
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
    """Resolve an address that a document at `base` contains."""
    try:
        whole = urljoin(str(base), text)
    except ValueError:
        return AddressFault("address", f"{text[:80]!r} is not a valid address")
    return parse_address(whole, insecure=insecure)
