"""An operator's list of hosts: names with or without a port, and networks."""

from __future__ import annotations

import pytest

from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import AddressGuard, AllowedHosts, BlockedAddress

ALLOWED = AllowedHosts(("Hooks.internal", "10.1.2.3:8443", "[::1]:4480", "192.168.0.0/16", "fd00::/8"))


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("hooks.internal", 80, True),
        ("HOOKS.internal.", 443, True),
        ("other.internal", 80, False),
        ("10.1.2.3", 8443, True),
        ("10.1.2.3", 8444, False),
        ("[::1]", 4480, True),
        ("192.168.7.7", 1, True),
        ("192.169.0.1", 1, False),
        ("fd00::1", 443, True),
    ],
)
def test_an_entry_allows_its_host_on_its_port(host: str, port: int, *, allowed: bool) -> None:
    assert ((host, port) in ALLOWED) is allowed


@pytest.mark.parametrize("entry", ["", ":80", "10.0.0.1/8", "a b", "https://host", "host:99999", "/8"])
def test_an_entry_that_means_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError):
        AllowedHosts((entry,))


@pytest.mark.anyio
async def test_a_name_may_lead_into_an_allowed_network_only_with_all_its_addresses() -> None:
    answers = [["192.168.0.9"], ["192.168.0.9", "10.0.0.1"]]

    async def resolve(_: str, __: int) -> list[str]:
        return answers.pop(0)

    guard = AddressGuard(ALLOWED, networks=ALLOWED.networks, resolve=resolve)
    assert await guard.addresses("printer.example", 443) == ["192.168.0.9"]
    assert isinstance(await guard.addresses("printer.example", 443), BlockedAddress)
