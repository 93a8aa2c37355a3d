"""The status document of an agent."""

from __future__ import annotations

from functools import partial

import pytest

from bespeak.contract.agent import Agent
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.projections.agent_documents import project_status
from bespeak.documents.projections.manifest_signature import sign_content, verify_manifest
from bespeak.state.identity.key_text import generate_key

NOW = "2026-05-02T00:00:00Z"
SERVICE = Service(identity=ServerIdentity(server_id="a.example", operator="A", contact="a@a.example"))
ADA = Agent(agent_id="a" * 64, name="Ada L", status="suspended", updated_at="2026-05-01T00:00:00Z")


@pytest.mark.requirement("CORE-7.3-14", "CORE-7.3-15")
def test_status_has_the_state_and_the_time_of_its_last_change() -> None:
    document = project_status(ADA, SERVICE, generated_at=NOW, changed_at=None)
    assert document == {
        "document_type": "agtp-status",
        "canonical_id": "a" * 64,
        "agent_label": "Ada-L",
        "org_domain": "a.example",
        "lifecycle_state": "suspended",
        "cert_status": "none",
        "last_updated": "2026-05-01T00:00:00Z",
        "generated_at": NOW,
    }
    assert project_status(ADA, SERVICE, generated_at=NOW, changed_at=NOW)["last_updated"] == NOW


def test_status_is_signed_like_an_identity() -> None:
    key = generate_key()
    document = project_status(ADA, SERVICE, generated_at=NOW, changed_at=None, sign=partial(sign_content, key=key))
    assert document["manifest_issuer"] == "a.example"
    assert verify_manifest(document, key).trusted
    assert verify_manifest({**document, "lifecycle_state": "active"}, key).state == "invalid"
