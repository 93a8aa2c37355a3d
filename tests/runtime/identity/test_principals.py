"""Who calls, and with which authority."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.agent import Agent
from bespeak.protocol.exchange.principal import NO_SCOPES, Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.principals import Principals
from bespeak.state.identity.credentials import Authenticated

KNOWN = "1" * 64
OTHER = "2" * 64


def principals(*, require_known: bool | None = False, status: str = "active", **fields: Any) -> Principals:
    scopes = ("booking:*", "calendar:read")
    agent = Agent(agent_id=KNOWN, name="desk", scopes=scopes, status=status, wildcards=True, **fields)
    return Principals(Agents([agent]), "test.example", require_known=require_known)


def proven(agent_id: str = KNOWN, scopes: Scopes | None = None, **fields: Any) -> Authenticated:
    return Authenticated(agent_id, ("token",), scopes, **fields)


def refused(found: Principal | Refused) -> Refused:
    assert isinstance(found, Refused)
    return found


@pytest.mark.requirement("CORE-2.3-6")
def test_a_known_agent_inherits_its_whole_grant_when_it_claims_nothing() -> None:
    found = principals().resolve(KNOWN, None)
    assert found == Principal(KNOWN, Scopes(["booking:*", "calendar:read"]), wildcards=True, known=True)


@pytest.mark.requirement("CORE-2.3-4")
def test_a_claim_narrows_the_grant() -> None:
    found = principals().resolve(KNOWN, "booking:room , calendar:read")
    assert isinstance(found, Principal)
    assert found.scopes == Scopes(["booking:room", "calendar:read"])


@pytest.mark.requirement("CORE-2.3-5")
def test_a_claim_wider_than_the_grant_is_a_262() -> None:
    found = refused(principals().resolve(KNOWN, "booking:room,payments:purchase"))
    assert (found.status, found.code, found.details["type"]) == (262, "scope-claim-invalid", "scope-required")
    assert found.details["invalid"] == ["payments:purchase"]


@pytest.mark.requirement("CORE-7.5-6")
def test_a_wildcard_claim_needs_a_grant_as_wide() -> None:
    assert refused(principals().resolve(KNOWN, "calendar:*")).status == 262
    assert isinstance(principals().resolve(KNOWN, "booking:*"), Principal)


def test_the_claim_of_an_unknown_agent_is_taken_as_asserted() -> None:
    assert principals().resolve(OTHER, "booking:room") == Principal(OTHER, Scopes(["booking:room"]))


@pytest.mark.requirement("CORE-6.1-1", "CORE-7.1-5")
def test_an_unknown_agent_is_a_401_where_agents_must_be_known() -> None:
    assert refused(principals(require_known=True).resolve(OTHER, None)).status == 401


@pytest.mark.requirement("CORE-7.1-5", "CORE-2.3-5")
def test_unknown_agent_is_refused_as_soon_as_one_agent_is_registered() -> None:
    made = principals(require_known=None)
    for scope in (None, "booking:room", "any:thing"):
        found = refused(made.resolve(OTHER, scope))
        assert (found.status, found.code) == (401, "agent-unknown")
    assert isinstance(made.resolve(KNOWN, "booking:room"), Principal)
    assert refused(made.prove(proven(OTHER, Scopes(["booking:room"])), None)).code == "agent-unknown"
    none = Principals(Agents(), "test.example", require_known=None)
    assert isinstance(none.resolve(OTHER, "any:thing"), Principal)


@pytest.mark.requirement("CORE-2.3-5")
def test_anonymous_caller_claims_no_scope_where_agents_are_registered() -> None:
    made = principals(require_known=None)
    found = refused(made.resolve(None, "any:thing"))
    assert (found.status, found.details["type"]) == (262, "credentials-missing")
    assert found.message.endswith("send the Agent-ID of an agent that is registered here.")
    assert isinstance(made.resolve(None, ""), Principal)
    assert isinstance(principals().resolve(None, "any:thing"), Principal)


@pytest.mark.requirement("CORE-2.3-1")
def test_an_id_that_is_not_canonical_is_a_400() -> None:
    for agent_id in ("agt-7f3a", "A" * 64, "1" * 63, "agtp://" + "1" * 64, ""):
        assert refused(principals().resolve(agent_id, None)).code == "invalid-canonical-id"


@pytest.mark.requirement("CORE-7.5-1")
def test_an_invalid_scope_is_a_400_that_shows_it() -> None:
    for value in ("booking", "Booking:room", "booking:room calendar:read", "a:b,,c:d", "x" * 5000):
        found = refused(principals().resolve(KNOWN, value))
        assert (found.status, found.code) == (400, "invalid-authority-scope")
        assert len(found.message) < 400


@pytest.mark.requirement("CORE-6.1-5", "CORE-7.4-3", "CORE-7.4-4", "CORE-3-6")
def test_a_suspended_agent_is_a_503_and_a_revoked_one_a_410() -> None:
    assert refused(principals(status="Suspended").resolve(KNOWN, None)).status == 503
    for state in ("revoked", "Retired", "deprecated"):
        gone = refused(principals(status=state, updated_at="2026-05-01T00:00:00Z").resolve(KNOWN, None))
        assert (gone.status, gone.details["since"]) == (410, "2026-05-01T00:00:00Z")


def test_long_headers_of_strangers_are_not_remembered() -> None:
    made = principals()
    for number in range(50):
        made.resolve("x" * 5000 + str(number), None)
        made.resolve(KNOWN, "y" * 5000 + str(number))
    assert made._recent.cache_info().currsize == 0


@pytest.mark.requirement("CORE-7.1-5")
def test_a_pending_agent_and_one_with_an_unreadable_document_are_a_401() -> None:
    for state in ("pending", "unreadable"):
        found = refused(principals(status=state).resolve(KNOWN, None))
        assert (found.status, found.code) == (401, "agent-not-active")


def test_a_proven_agent_has_the_grant_of_its_document_and_its_proof() -> None:
    found = principals().prove(proven(principal_id="alice", tls_identity="ab"), None)
    assert isinstance(found, Principal)
    assert (found.agent_id, found.scopes) == (KNOWN, Scopes(["booking:*", "calendar:read"]))
    assert (found.verified, found.principal_id, found.tls_identity, found.known) == ("token", "alice", "ab", True)


@pytest.mark.parametrize(
    ("credited", "expected"),
    [
        (["booking:room"], ["booking:room"]),
        (["booking:*", "payments:*"], ["booking:*"]),
        (["*:*"], ["booking:*", "calendar:read"]),
        (["*:room"], ["booking:room"]),
        (["payments:purchase"], []),
        ([], []),
    ],
)
def test_a_credential_narrows_a_document_and_never_widens_it(credited: list[str], expected: list[str]) -> None:
    found = principals().prove(proven(scopes=Scopes(credited)), None)
    assert isinstance(found, Principal)
    assert list(found.scopes) == expected


@pytest.mark.requirement("CORE-2.3-5")
def test_a_claim_beyond_document_and_credential_is_a_262() -> None:
    made = principals()
    assert isinstance(made.prove(proven(), "calendar:read"), Principal)
    found = refused(made.prove(proven(scopes=Scopes(["booking:room"])), "calendar:read"))
    assert (found.status, found.code, found.details["declared"]) == (262, "scope-claim-invalid", ["booking:room"])


def test_an_unknown_agent_has_only_the_scopes_of_its_credential() -> None:
    made = principals()
    found = made.prove(proven(OTHER, Scopes(["booking:room"])), None)
    assert isinstance(found, Principal)
    assert (found.scopes, found.known) == (Scopes(["booking:room"]), False)
    bare = made.prove(proven(OTHER), None)
    assert isinstance(bare, Principal)
    assert bare.scopes == NO_SCOPES
    assert refused(made.prove(proven(OTHER), "booking:room")).code == "scope-claim-invalid"
    assert refused(principals(require_known=True).prove(proven(OTHER), None)).status == 401


@pytest.mark.requirement("CORE-7.4-5")
def test_proof_does_not_bring_a_suspended_or_revoked_agent_back() -> None:
    for state, expected in (("suspended", 503), ("retired", 410), ("pending", 401)):
        assert refused(principals(status=state).prove(proven(), None)).status == expected


def test_another_way_of_proof_gives_another_principal() -> None:
    made = principals()
    one = made.prove(proven(tls_identity="ab"), None)
    other = made.prove(proven(tls_identity="cd"), None)
    assert isinstance(one, Principal)
    assert isinstance(other, Principal)
    assert (one.tls_identity, other.tls_identity) == ("ab", "cd")


def test_a_chain_requires_an_identified_caller() -> None:
    found = refused(principals().delegate(Principal(), "a.b.c", None))
    assert (found.status, found.details["type"]) == (262, "credentials-missing")
    assert refused(principals().delegate(Principal(KNOWN), "a.b.c", None)).status == 551
