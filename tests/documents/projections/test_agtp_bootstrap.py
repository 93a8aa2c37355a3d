"""/.well-known/agtp: from a domain to its AGTP address."""

from __future__ import annotations

import pytest

from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.projections.discovery import project_bootstrap


def service(server_id: str, agtp: str | None = None) -> Service:
    return Service(identity=ServerIdentity(server_id=server_id, operator="Acme", contact=""), agtp=agtp)


@pytest.mark.requirement("CORE-3-16")
def test_document_has_address_and_time_and_no_verification() -> None:
    assert project_bootstrap(service("rooms.example"), port=4480, updated="2026-11-16T08:00:00Z") == {
        "agtp_version": "1.0",
        "endpoint": "rooms.example:4480",
        "namespace_root": "agtp://rooms.example:4480/agents",
        "issuer": "agtp://rooms.example",
        "discovery": {
            "namespace_document": "agtp://rooms.example:4480/agents",
            "well_known_updated_at": "2026-11-16T08:00:00Z",
        },
    }


@pytest.mark.parametrize(
    ("server_id", "agtp", "endpoint"),
    [
        ("rooms.example", None, "rooms.example:5000"),
        ("::1", None, "[::1]:5000"),
        ("x", "agtp://public.example", "public.example:4480"),
        ("x", "agtp://public.example:4490/", "public.example:4490"),
        ("x", "agtp://[2001:db8::1]:4490", "[2001:db8::1]:4490"),
        ("x", f"agtp://{'a' * 64}@public.example", "public.example:4480"),
    ],
)
def test_address_of_the_contract_takes_precedence_over_the_listening_port(
    server_id: str, agtp: str | None, endpoint: str
) -> None:
    assert project_bootstrap(service(server_id, agtp), port=5000, updated="")["endpoint"] == endpoint
