"""Who calls, and with which authority."""

from __future__ import annotations

from bespeak.contract.agent import Agent
from bespeak.exchange.principal import Principal
from bespeak.exchange.refusal import Refused
from bespeak.exchange.scope import Scopes
from bespeak.runtime.principals import Principals

KNOWN = "1" * 64
OTHER = "2" * 64


def principals(*, require_known: bool = False, status: str = "active") -> Principals:
    agent = Agent(agent_id=KNOWN, name="desk", scopes=("booking:*", "calendar:read"), status=status, wildcards=True)
    return Principals([agent], require_known=require_known)


def refused(found: Principal | Refused) -> Refused:
    assert isinstance(found, Refused)
    return found


def test_a_known_agent_inherits_its_whole_grant_when_it_claims_nothing() -> None:
    found = principals().resolve(KNOWN, None)
    assert found == Principal(KNOWN, Scopes(["booking:*", "calendar:read"]), wildcards=True, known=True)


def test_a_claim_narrows_the_grant() -> None:
    found = principals().resolve(KNOWN, "booking:room , calendar:read")
    assert isinstance(found, Principal)
    assert found.scopes == Scopes(["booking:room", "calendar:read"])


def test_a_claim_wider_than_the_grant_is_a_262() -> None:
    found = refused(principals().resolve(KNOWN, "booking:room,payments:purchase"))
    assert (found.status, found.code, found.details["type"]) == (262, "scope-claim-invalid", "scope-required")
    assert found.details["invalid"] == ["payments:purchase"]


def test_a_wildcard_claim_needs_a_grant_as_wide() -> None:
    assert refused(principals().resolve(KNOWN, "calendar:*")).status == 262
    assert isinstance(principals().resolve(KNOWN, "booking:*"), Principal)


def test_the_claim_of_an_unknown_agent_is_taken_as_asserted() -> None:
    assert principals().resolve(OTHER, "booking:room") == Principal(OTHER, Scopes(["booking:room"]))


def test_an_unknown_agent_is_a_401_where_agents_must_be_known() -> None:
    assert refused(principals(require_known=True).resolve(OTHER, None)).status == 401


def test_an_id_that_is_not_canonical_is_a_400() -> None:
    for agent_id in ("agt-7f3a", "A" * 64, "1" * 63, "agtp://" + "1" * 64, ""):
        assert refused(principals().resolve(agent_id, None)).code == "invalid-canonical-id"


def test_a_scope_that_is_no_token_is_a_400_that_shows_it() -> None:
    for value in ("booking", "Booking:room", "booking:room calendar:read", "a:b,,c:d", "x" * 5000):
        found = refused(principals().resolve(KNOWN, value))
        assert (found.status, found.code) == (400, "invalid-authority-scope")
        assert len(found.message) < 400


def test_a_suspended_agent_is_a_503_and_a_revoked_one_a_410() -> None:
    assert refused(principals(status="Suspended").resolve(KNOWN, None)).status == 503
    for state in ("revoked", "Retired", "deprecated"):
        assert refused(principals(status=state).resolve(KNOWN, None)).status == 410


def test_long_headers_of_strangers_are_not_remembered() -> None:
    made = principals()
    for number in range(50):
        made.resolve("x" * 5000 + str(number), None)
        made.resolve(KNOWN, "y" * 5000 + str(number))
    assert made._recent.cache_info().currsize == 0
