"""The signed Agent Namespace Document lists active, non-experimental agents; and the status of one agent."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from bespeak.contract.agent import Agent
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.projections.agent_documents import canonical_namespace, project_namespace
from bespeak.documents.projections.manifest_signature import sign_content, verify_content
from bespeak.state.identity.key_text import generate_key, key_id

NOW = "2026-11-16T08:00:00Z"


def service(**members: Any) -> Service:
    identity = ServerIdentity(**{"server_id": "rooms.acme.example", "operator": "Acme", "contact": "c", **members})
    return Service(identity=identity)


def agent(number: int, **members: Any) -> Agent:
    return Agent(**{"agent_id": f"{number:064x}", "name": f"Agent {number}", **members})


AGENTS = [
    agent(1, trust_tier=1, issued_at="2026-01-01T00:00:00Z", document={"cert_status": "valid"}),
    agent(2, status="suspended"),
    agent(3, status="retired"),
    agent(4, status="unreadable"),
    agent(5, trust_tier=3),
    agent(6, status="pending"),
    agent(7, name="Zoë & Sons", updated_at="2026-02-01T00:00:00Z"),
    agent(8, status="deprecated"),
]


@pytest.mark.requirement("CORE-7.3-10")
def test_only_active_and_non_experimental_agents_are_listed() -> None:
    document = project_namespace(AGENTS, service(), generated_at=NOW)
    assert [entry["canonical_id"] for entry in document["agents"]] == [AGENTS[0].agent_id, AGENTS[6].agent_id]
    assert (document["total_active"], document["generated_at"]) == (2, NOW)
    assert (document["document_type"], document["org_domain"]) == ("agtp-namespace", "rooms.acme.example")
    assert document["signature"] is None


@pytest.mark.requirement("CORE-7.3-11")
def test_entry_has_identity_and_address() -> None:
    first, second = project_namespace(AGENTS, service(), generated_at=NOW)["agents"]
    assert first == {
        "agent_label": "Agent-1",
        "canonical_id": AGENTS[0].agent_id,
        "lifecycle_state": "active",
        "trust_tier": 1,
        "cert_status": "valid",
        "manifest_uri": f"agtp://{AGENTS[0].agent_id}@rooms.acme.example",
        "activated_at": "2026-01-01T00:00:00Z",
        "last_updated": "2026-01-01T00:00:00Z",
    }
    assert (second["agent_label"], second["trust_tier"], second["last_updated"]) == (
        "Zo-Sons",
        2,
        "2026-02-01T00:00:00Z",
    )


@pytest.mark.parametrize(
    ("server_id", "host"),
    [("agtp://rooms.example/", "rooms.example"), ("::1", "[::1]"), ("rooms.example:4481", "rooms.example:4481")],
)
def test_an_agent_is_reached_at_the_servers_own_name(server_id: str, host: str) -> None:
    document = project_namespace(AGENTS, service(server_id=server_id), generated_at=NOW)
    assert document["agents"][0]["manifest_uri"].endswith(f"@{host}")


def test_common_zone_is_named() -> None:
    zoned = [agent(1, document={"governance_zone": "zone:a"}), agent(2, document={"governance_zone": "zone:a"})]
    assert project_namespace(zoned, service(), generated_at=NOW)["governance_zone"] == "zone:a"
    mixed = [*zoned, agent(3)]
    assert project_namespace(mixed, service(), generated_at=NOW)["governance_zone"] is None
    assert project_namespace([], service(), generated_at=NOW)["governance_zone"] is None


def test_the_order_of_agents_does_not_change_the_document() -> None:
    assert project_namespace(AGENTS, service(), generated_at=NOW) == project_namespace(
        reversed(AGENTS), service(), generated_at=NOW
    )


@pytest.mark.requirement("CORE-7.3-11")
def test_a_signed_namespace_verifies_and_shows_any_change() -> None:
    key = generate_key()
    sign = partial(sign_content, key=key)
    document = project_namespace(AGENTS, service(), generated_at=NOW, sign=sign, key_id=key_id(key))
    assert document.keys() == {
        *("document_type", "schema_version", "org_domain", "governance_zone", "generated_at", "agents"),
        *("total_active", "namespace_cert_fingerprint", "signature"),
    }
    signature = document["signature"]
    assert (signature["algorithm"], signature["key_id"]) == ("EdDSA", key_id(key))
    assert verify_content(signature["value"], canonical_namespace(document), key).trusted
    older = {**document, "generated_at": "2026-11-16T07:00:00Z"}
    assert verify_content(signature["value"], canonical_namespace(older), key).state == "invalid"
