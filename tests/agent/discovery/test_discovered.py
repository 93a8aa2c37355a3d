"""What was found."""

from __future__ import annotations

from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.discovered import Discovered
from bespeak.protocol.address_guard import Origin, WebAddress


def test_a_capability_is_found_by_its_id() -> None:
    origin = Origin("https", "a.example", 443)
    address = WebAddress(origin, "/")
    one = Capability(id="one", method="GET", path="/x", origin=origin, target="/x")
    found = Discovered(kind="ai", address=address, base=address, capabilities=(one,))
    assert found.capability("one") is one
    assert found.capability("two") is None
