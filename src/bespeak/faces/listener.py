"""Listening sockets for every face: on all addresses of a host name, or on none if one of them fails."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Mapping
from typing import Any, Final

from bespeak.errors import ConfigError
from bespeak.protocol.address import Address

BACKLOG: Final = 1024


async def open_listeners(host: str, port: int, *, reuse_port: bool = False) -> list[socket.socket]:
    """Listen on every address of the host name; with port 0 the system chooses."""
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return _listen({address: family for family, _, _, _, address in found}, reuse_port)
    except (OSError, UnicodeError) as error:  # UnicodeError: not a valid host name, such as a..b
        raise _refusal(Address(host, port), error) from error


def reserve_port(address: Address, *, shared: bool) -> tuple[socket.socket, Address]:
    """Bind a port without listening, and return it; the socket holds the port until it is closed.

    Listen on it afterwards with the same option: `shared` is for several processes (SO_REUSEPORT).
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    placeholder = socket.socket(family, socket.SOCK_STREAM)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as alone:
            # Without SO_REUSEPORT this fails if another process listens, which would get half of the connections.
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind((address.host, address.port))
        placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        placeholder.bind((address.host, address.port))
    except (OSError, UnicodeError) as error:
        placeholder.close()
        raise _refusal(address, error) from error
    return placeholder, Address(address.host, placeholder.getsockname()[1])


def _listen(addresses: Mapping[tuple[Any, ...], int], reuse_port: bool) -> list[socket.socket]:
    """Open one listening socket per address, or none if one of them fails."""
    with contextlib.ExitStack() as opened:
        listeners = []
        for address, family in addresses.items():
            listener = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            listeners.append(listener)
        opened.pop_all()
        return listeners


def _refusal(address: Address, error: OSError | UnicodeError) -> ConfigError:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    advice = " Stop the process that uses it, or choose another port." if taken else ""
    reason = getattr(error, "strerror", None) or error
    return ConfigError(f"Cannot listen on {address}: {reason}.{advice}")
