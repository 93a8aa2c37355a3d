"""Listening sockets, and reserved ports."""

from __future__ import annotations

import contextlib
import socket

import pytest

from bespeak.errors import ConfigError
from bespeak.faces.server import open_listeners, reserve_port
from bespeak.protocol.address import Address


@pytest.mark.anyio
@pytest.mark.parametrize("shared", [False, True])
async def test_a_reserved_port_can_be_listened_on(shared: bool) -> None:
    placeholder, address = reserve_port(Address("127.0.0.1", 0), shared=shared)
    with placeholder:
        assert address.port
        [listener] = await open_listeners(address.host, address.port, reuse_port=shared)
        with listener, socket.create_connection((address.host, address.port), 5):
            pass


@pytest.mark.anyio
async def test_a_port_in_use_cannot_be_reserved() -> None:
    [listener] = await open_listeners("127.0.0.1", 0)
    with listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError, match="choose another port"):
            await open_listeners("127.0.0.1", port)
        with pytest.raises(ConfigError, match="choose another port"):
            reserve_port(Address("127.0.0.1", port), shared=True)


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
async def test_a_name_without_an_address_is_a_fault_of_configuration(host: str) -> None:
    with pytest.raises(ConfigError, match=f"Cannot listen on {host}:1"):
        await open_listeners(host, 1)
    with contextlib.suppress(socket.gaierror), pytest.raises(ConfigError):
        reserve_port(Address(host, 1), shared=False)
