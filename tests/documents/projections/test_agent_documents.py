"""The published identity document: complete in both forms, without private fields."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import msgspec
import pytest
import yaml
from tests.cases import rows

from bespeak.contract.agent import Agent
from bespeak.contract.policy import FLOOR_METHODS
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.projections.agent_documents import (
    IDENTITY_TYPES,
    canonical_namespace,
    project_identity,
    project_namespace,
    project_status,
    write_identity,
)
from bespeak.documents.projections.manifest_signature import sign_content, verify_content, verify_manifest
from bespeak.state.identity.agent_json import parse_agent
from bespeak.state.identity.jws import generate_key, key_id, public_jwk

ID = "a1" * 32
UPDATED = "2026-11-16T08:00:00Z"
SERVICE = Service(identity=ServerIdentity(server_id="rooms.acme.example", operator="Acme", contact="c"))
REQUIRED = {
    *("agtp_version", "document_type", "document_version", "agent_id", "name", "description", "principal"),
    *("principal_id", "issuer", "issued_at", "updated_at", "status", "methods", "capabilities", "scopes_accepted"),
    "trust_score",
}


def agent(**members: Any) -> Agent:
    read, findings = parse_agent(msgspec.json.encode({"agent_id": ID, "name": "Ada", **members}).decode(), "a.json")
    assert read.is_active or "status" in members, findings
    return read


def project(**members: Any) -> dict[str, Any]:
    return project_identity(agent(**members), SERVICE, issued=UPDATED)


@pytest.mark.requirement("CORE-7.3-1", "CORE-7.3-3", "CORE-7.5-5")
def test_document_has_every_required_field_floor_methods_and_both_forms_of_scopes() -> None:
    assert set(project()) >= REQUIRED | {"skills", "requires", "trust_tier", "verification_path"}
    document = project(requires={"methods": ["BOOK", "QUERY"], "scopes": ["a:b"], "wildcards": True})
    assert document["methods"] == [*FLOOR_METHODS, "BOOK"]
    assert document["requires"] == {"methods": ["BOOK", "QUERY"], "scopes": ["a:b"], "wildcards": True}
    assert (document["scopes_accepted"], document["wildcards"]) == (["a:b"], True)


def test_published_document_is_read_back_as_the_same_agent() -> None:
    first = agent(
        description="At the desk.",
        scopes_accepted=["booking:*"],
        methods=["BOOK"],
        wildcards=True,
        trust_tier=1,
        verification_path="hybrid",
        trust_score=0.9,
        principal="Acme",
        principal_id="p",
        owner_id="o",
        issuer="https://acme.example",
        issued_at="2026-02-01T08:00:00Z",
        updated_at="2026-02-02T08:00:00Z",
        delegation_permitted=True,
        max_delegation_depth=2,
        successor_agent="b1" * 32,
    )
    published = project_identity(first, SERVICE, issued=UPDATED)
    second, findings = parse_agent(msgspec.json.encode(published).decode(), "b.json")
    assert findings == []
    assert second is not None
    for name in Agent.__dataclass_fields__:
        if name != "document":
            assert getattr(second, name) == getattr(first, name), name


@pytest.mark.requirement("CORE-7.3-5")
def test_an_identity_without_proof_carries_a_warning_and_its_reason() -> None:
    document = project(trust_score=0.9)
    assert (document["trust_tier"], document["trust_warning"]) == (2, "verification-incomplete")
    assert document["trust_explanation"]
    verified = project(trust_score=0.9, trust_tier=1, verification_path="dns-anchored")
    assert "trust_warning" not in verified


FIRST, SECOND, ELSEWHERE = "2026-02-01T08:00:00Z", "2026-02-02T08:00:00Z", "2026-02-02T10:30:00+02:00"
MISSING, LOW = "No trust score has been computed.", "The trust score is low."


@pytest.mark.requirement("CORE-7.3-5")
@pytest.mark.parametrize(("score", "reason"), [(None, MISSING), (0.0, LOW), (0.49, LOW), (0.5, None), (1.0, None)])
def test_a_missing_or_low_score_comes_with_a_warning(score: float | None, reason: str | None) -> None:
    members = {} if score is None else {"trust_score": score}
    document = project(trust_tier=1, verification_path="dns-anchored", **members)
    assert document["trust_score"] == (score or 0.0)
    assert document.get("trust_warning") == ("trust-score-degraded" if reason else None)
    assert document.get("trust_explanation") == reason


@pytest.mark.requirement("CORE-7.3-2")
@rows(
    "said, published",
    ({"issued_at": SECOND, "updated_at": FIRST}, (SECOND, SECOND)),
    ({"issued_at": SECOND, "updated_at": ELSEWHERE}, (SECOND, ELSEWHERE)),
    ({"issued_at": SECOND}, (SECOND, SECOND)),
    ({"updated_at": FIRST}, (FIRST, FIRST)),
    ({}, (UPDATED, UPDATED)),
)
def test_a_document_is_not_updated_before_it_was_issued(said: dict[str, str], published: tuple[str, str]) -> None:
    document = project(**said)
    assert (document["issued_at"], document["updated_at"]) == published


def test_score_has_its_time_and_warning_and_status_are_passed_on() -> None:
    assert project(updated_at="2026-02-02T08:00:00Z")["trust_score_computed_at"] == "2026-02-02T08:00:00Z"
    issuer = project(trust_score=0.9, trust_score_computed_at="2026-01-05T00:00:00Z")
    assert issuer["trust_score_computed_at"] == "2026-01-05T00:00:00Z"
    assert project(trust_score=0.9, trust_score_computed_at=7)["trust_score_computed_at"] == UPDATED
    document = project(trust_warning="under-review", trust_explanation="Asked twice.")
    assert (document["trust_warning"], document["trust_explanation"]) == ("under-review", "Asked twice.")
    assert project(status="Suspended")["status"] == "suspended"


@pytest.mark.requirement("CORE-7.3-6", "CORE-10.1-14", "CORE-3-19")
@rows(
    "member",
    {"public_key": public_jwk(generate_key())},
    {"session_history": ["x-marks"]},
    {"scope_grant_token": "x-marks"},
    {"code": "x-marks"},
    {"policies": {"oauth": "x-marks"}},
    {"unheard_of": "x-marks"},
)
def test_private_fields_are_not_published(member: dict[str, Any]) -> None:
    document = project(**member)
    assert not member.keys() & document.keys()
    assert b"x-marks" not in msgspec.json.encode(document)


@pytest.mark.requirement("CORE-7.3-4")
def test_known_fields_of_the_issuer_are_published() -> None:
    said = {
        **dict.fromkeys(("org_domain", "governance_zone", "cert_fingerprint", "cert_status", "dns_anchor_record"), "a"),
        **dict.fromkeys(("log_inclusion_proof", "package_format", "package_integrity_hash", "audit_log_uri"), "b"),
        "trust_tier": 1,
        "verification_path": "hybrid",
        "escalation_policy": {"to": "desk"},
        "delegation_permitted": True,
        "max_delegation_depth": 2,
    }
    assert len(said) == 14
    assert project(**said).items() >= said.items()


@pytest.mark.requirement("CORE-7.3-7")
def test_version_changes_with_the_content_and_a_signed_document_is_verified_like_a_manifest() -> None:
    assert project()["document_version"] == project()["document_version"]
    assert project()["document_version"] != project(description="x")["document_version"]
    assert project(document_version="v7")["document_version"] == "v7"
    key = generate_key()
    document = project_identity(agent(), SERVICE, issued=UPDATED, sign=partial(sign_content, key=key))
    assert document["manifest_issuer"] == "rooms.acme.example"
    assert verify_manifest(document, key).trusted
    assert verify_manifest({**document, "status": "retired"}, key).state == "invalid"


def test_projecting_leaves_the_agent_as_it_was_and_gives_the_same_each_time() -> None:
    one = agent(skills=["reads"], capabilities=["retrieval"])
    before = msgspec.json.encode(one.document)
    first = project_identity(one, SERVICE, issued=UPDATED)
    first["skills"].append("changed")
    assert msgspec.json.encode(one.document) == before
    assert project_identity(one, SERVICE, issued=UPDATED)["skills"] == ["reads"]


NOW = "2026-11-16T08:00:00Z"


def service(**members: Any) -> Service:
    identity = ServerIdentity(**{"server_id": "rooms.acme.example", "operator": "Acme", "contact": "c", **members})
    return Service(identity=identity)


def numbered(number: int, **members: Any) -> Agent:
    return Agent(**{"agent_id": f"{number:064x}", "name": f"Agent {number}", **members})


AGENTS = [
    numbered(1, trust_tier=1, issued_at="2026-01-01T00:00:00Z", document={"cert_status": "valid"}),
    numbered(2, status="suspended"),
    numbered(3, status="retired"),
    numbered(4, status="unreadable"),
    numbered(5, trust_tier=3),
    numbered(6, status="pending"),
    numbered(7, name="Zoë & Sons", updated_at="2026-02-01T00:00:00Z"),
    numbered(8, status="deprecated"),
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
    assert (second["agent_label"], second["trust_tier"]) == ("Zo-Sons", 2)
    assert second["last_updated"] == "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("server_id", "host"),
    [("agtp://rooms.example/", "rooms.example"), ("::1", "[::1]"), ("rooms.example:4481", "rooms.example:4481")],
)
def test_an_agent_is_reached_at_the_servers_own_name(server_id: str, host: str) -> None:
    document = project_namespace(AGENTS, service(server_id=server_id), generated_at=NOW)
    assert document["agents"][0]["manifest_uri"].endswith(f"@{host}")


def test_common_zone_is_named_and_the_order_of_agents_does_not_matter() -> None:
    zoned = [numbered(number, document={"governance_zone": "zone:a"}) for number in (1, 2)]
    for agents, zone in ((zoned, "zone:a"), ([*zoned, numbered(3)], None), ([], None)):
        assert project_namespace(agents, service(), generated_at=NOW)["governance_zone"] == zone
    one, other = (project_namespace(agents, service(), generated_at=NOW) for agents in (AGENTS, reversed(AGENTS)))
    assert one == other


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


LATER = "2026-05-02T00:00:00Z"
HOME = Service(identity=ServerIdentity(server_id="a.example", operator="A", contact="a@a.example"))
ADA = Agent(agent_id="a" * 64, name="Ada L", status="suspended", updated_at="2026-05-01T00:00:00Z")


@pytest.mark.requirement("CORE-7.3-14", "CORE-7.3-15")
def test_status_has_the_state_and_the_time_of_its_last_change() -> None:
    document = project_status(ADA, HOME, generated_at=LATER, changed_at=None)
    assert document == {
        "document_type": "agtp-status",
        "canonical_id": "a" * 64,
        "agent_label": "Ada-L",
        "org_domain": "a.example",
        "lifecycle_state": "suspended",
        "cert_status": "none",
        "last_updated": "2026-05-01T00:00:00Z",
        "generated_at": LATER,
    }
    assert project_status(ADA, HOME, generated_at=LATER, changed_at=LATER)["last_updated"] == LATER


def test_status_is_signed_like_an_identity() -> None:
    key = generate_key()
    document = project_status(ADA, HOME, generated_at=LATER, changed_at=None, sign=partial(sign_content, key=key))
    assert document["manifest_issuer"] == "a.example"
    assert verify_manifest(document, key).trusted
    assert verify_manifest({**document, "lifecycle_state": "active"}, key).state == "invalid"


DOCUMENT = {"agent_id": "a" * 64, "name": "<script>Ünal", "scopes": ["a:b"], "wildcards": False, "trust_score": 0.5}


@pytest.mark.parametrize("media_type", [name for name in IDENTITY_TYPES if name != "text/html"])
def test_json_and_yaml_have_the_same_content(media_type: str) -> None:
    text, content_type = write_identity(DOCUMENT, media_type)
    assert (yaml.safe_load(text) if "yaml" in media_type else json.loads(text)) == DOCUMENT
    assert content_type == (media_type if "yaml" in media_type else "application/vnd.agtp.identity+json")


def test_a_page_shows_every_member_and_escapes_it() -> None:
    text, content_type = write_identity(DOCUMENT, "text/html")
    page = text.decode()
    assert content_type == "text/html; charset=utf-8"
    assert all(name in page for name in DOCUMENT)
    assert "<script>" not in page
    assert "&lt;script&gt;Ünal" in page
