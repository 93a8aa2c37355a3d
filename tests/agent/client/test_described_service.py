"""A document of the web in a manifest's form."""

from __future__ import annotations

from bespeak.agent.client.web import described_manifest
from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.discovered import Discovered
from bespeak.protocol.address_guard import Origin, WebAddress

HERE = Origin("https", "flights.test", 443)


def test_capabilities_are_endpoints_with_the_effects_of_their_methods() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    found = Discovered(
        kind="ai",
        address=WebAddress(HERE, "/"),
        base=WebAddress(HERE, "/"),
        name="Flights",
        capabilities=(
            Capability(id="a", method="GET", path="/x", origin=HERE, target="/x", input_schema=schema),
            Capability(id="b", method="POST", path="/x", origin=HERE, target="/x", description="Book"),
        ),
    )
    manifest = described_manifest(found)
    read, write = manifest.endpoints
    assert (read.semantic.impact, read.semantic.is_idempotent) == ("informational", True)
    assert (write.semantic.impact, write.semantic.is_idempotent) == ("irreversible", False)
    assert manifest.endpoint("GET", "/x") is read
    assert read.input_schema == schema
    assert (manifest.server.server_id, manifest.server.name) == ("flights.test", "Flights")
    assert [entry["description"] for entry in manifest.raw["endpoints"]] == ["", "Book"]
