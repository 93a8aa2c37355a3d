"""Who calls with which authority: agents of files and of the store, grants, and the signing key."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.cases import rows
from tests.service import make_endpoint

from bespeak.contract.agent import Agent
from bespeak.documents.projections.manifest_signature import SIGNATURE_MEMBER
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.principal import NO_SCOPES, Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.authority import Grant
from bespeak.runtime.identity.principals import Principals
from bespeak.runtime.identity.signer import Signer
from bespeak.state.identity.credentials import Authenticated
from bespeak.state.store.commands.agents import PutAgent, SetAgentStatus
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

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


def accepted(found: Principal | Refused) -> Principal:
    assert isinstance(found, Principal)
    return found


@pytest.mark.requirement("CORE-2.3-6", "CORE-2.3-4", "CORE-2.3-5", "CORE-7.5-6")
def test_a_known_agent_inherits_its_grant_and_claims_no_more() -> None:
    found = principals().resolve(KNOWN, None)
    assert found == Principal(KNOWN, Scopes(["booking:*", "calendar:read"]), wildcards=True, known=True)
    assert accepted(principals().resolve(KNOWN, "booking:room , calendar:read")).scopes == Scopes(
        ["booking:room", "calendar:read"]
    )
    found = refused(principals().resolve(KNOWN, "booking:room,payments:purchase"))
    assert (found.status, found.code, found.details["type"]) == (262, "scope-claim-invalid", "scope-required")
    assert found.details["invalid"] == ["payments:purchase"]
    assert refused(principals().resolve(KNOWN, "calendar:*")).status == 262
    assert isinstance(principals().resolve(KNOWN, "booking:*"), Principal)


@pytest.mark.requirement("CORE-6.1-1", "CORE-7.1-5")
def test_the_claim_of_an_unknown_agent_is_taken_unless_agents_must_be_known() -> None:
    assert principals().resolve(OTHER, "booking:room") == Principal(OTHER, Scopes(["booking:room"]))
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


@pytest.mark.requirement("CORE-2.3-1", "CORE-7.5-1")
def test_unreadable_ids_and_scopes_are_a_400() -> None:
    for agent_id in ("agt-7f3a", "A" * 64, "1" * 63, "agtp://" + "1" * 64, ""):
        assert refused(principals().resolve(agent_id, None)).code == "invalid-canonical-id"
    for value in ("booking", "Booking:room", "booking:room calendar:read", "a:b,,c:d", "x" * 5000):
        found = refused(principals().resolve(KNOWN, value))
        assert (found.status, found.code) == (400, "invalid-authority-scope")
        assert len(found.message) < 400


@pytest.mark.requirement("CORE-6.1-5", "CORE-7.4-3", "CORE-7.4-4", "CORE-3-6", "CORE-7.1-5", "CORE-7.4-5")
def test_suspended_revoked_and_pending_agents_are_refused_with_their_status() -> None:
    assert refused(principals(status="Suspended").resolve(KNOWN, None)).status == 503
    for state in ("revoked", "Retired", "deprecated"):
        gone = refused(principals(status=state, updated_at="2026-05-01T00:00:00Z").resolve(KNOWN, None))
        assert (gone.status, gone.details["since"]) == (410, "2026-05-01T00:00:00Z")
    for state in ("pending", "unreadable"):
        found = refused(principals(status=state).resolve(KNOWN, None))
        assert (found.status, found.code) == (401, "agent-not-active")
    for state, expected in (("suspended", 503), ("retired", 410), ("pending", 401)):
        assert refused(principals(status=state).prove(proven(), None)).status == expected


def test_long_headers_of_strangers_are_not_remembered() -> None:
    made = principals()
    for number in range(50):
        made.resolve("x" * 5000 + str(number), None)
        made.resolve(KNOWN, "y" * 5000 + str(number))
    assert made._recent.cache_info().currsize == 0


def test_a_proven_agent_has_its_grant_and_a_chain_needs_an_identified_caller() -> None:
    found = accepted(principals().prove(proven(principal_id="alice", tls_identity="ab"), None))
    assert (found.agent_id, found.scopes) == (KNOWN, Scopes(["booking:*", "calendar:read"]))
    assert (found.verified, found.principal_id, found.tls_identity, found.known) == ("token", "alice", "ab", True)
    found = refused(principals().delegate(Principal(), "a.b.c", None))
    assert (found.status, found.details["type"]) == (262, "credentials-missing")
    assert refused(principals().delegate(Principal(KNOWN), "a.b.c", None)).status == 551


@rows(
    "credited, expected",
    (["booking:room"], ["booking:room"]),
    (["booking:*", "payments:*"], ["booking:*"]),
    (["*:*"], ["booking:*", "calendar:read"]),
    (["*:room"], ["booking:room"]),
    (["payments:purchase"], []),
    ([], []),
)
def test_a_credential_narrows_a_document_and_never_widens_it(credited: list[str], expected: list[str]) -> None:
    found = accepted(principals().prove(proven(scopes=Scopes(credited)), None))
    assert list(found.scopes) == expected


@pytest.mark.requirement("CORE-2.3-5")
def test_a_claim_beyond_document_and_credential_is_a_262() -> None:
    made = principals()
    assert isinstance(made.prove(proven(), "calendar:read"), Principal)
    found = refused(made.prove(proven(scopes=Scopes(["booking:room"])), "calendar:read"))
    assert (found.status, found.code, found.details["declared"]) == (262, "scope-claim-invalid", ["booking:room"])


def test_credentials_decide_scopes_of_unknown_agents_and_the_principal() -> None:
    made = principals()
    found = accepted(made.prove(proven(OTHER, Scopes(["booking:room"])), None))
    assert (found.scopes, found.known) == (Scopes(["booking:room"]), False)
    assert accepted(made.prove(proven(OTHER), None)).scopes == NO_SCOPES
    assert refused(made.prove(proven(OTHER), "booking:room")).code == "scope-claim-invalid"
    assert refused(principals(require_known=True).prove(proven(OTHER), None)).status == 401
    for identity in ("ab", "cd"):
        assert accepted(made.prove(proven(tls_identity=identity), None)).tls_identity == identity


FILED = "1" * 64
STORED = "2" * 64


def put(agent_id: str = STORED, name: str = "desk", **members: Any) -> PutAgent:
    document = {"agent_id": agent_id, "name": name, **members}
    return PutAgent(agent_id, name, "active", msgspec.json.encode(document).decode(), "operator")


def suspend(agent_id: str, allowed_from: frozenset[str] = frozenset({"active"}), **fields: Any) -> SetAgentStatus:
    return SetAgentStatus(agent_id, "DEACTIVATE", allowed_from, "suspended", "operator", "", **fields)


def filed(**fields: Any) -> Agents:
    return Agents([Agent(agent_id=FILED, name="lobby", scopes=("booking:*",), **fields)])


async def changed(agents: Agents, seen: int) -> None:
    """Wait until the agents are another revision."""
    arrived = asyncio.Event()
    agents.watch(arrived.set)
    if agents.revision == seen:
        await asyncio.wait_for(arrived.wait(), 10)


async def test_agents_of_both_places_are_known(store: Store) -> None:
    await store.do(put(scopes_accepted=["calendar:read"]))
    agents = filed()
    await agents.follow(store)
    assert {agent.agent_id for agent in agents} == {FILED, STORED}
    assert agents.grant_of(STORED) == Scopes(["calendar:read"])
    assert agents.grant_of(FILED) == Scopes(["booking:*"])
    assert agents.get("3" * 64) is agents.get(None) is agents.grant_of("3" * 64) is None


async def test_the_store_has_the_last_word_on_documents_and_states(store: Store) -> None:
    await store.do(put(FILED, "lobby", scopes_accepted=["calendar:read"]))
    await store.do(suspend(FILED))
    agents = filed()
    await agents.follow(store)
    agent = agents.get(FILED)
    assert (agent.scopes, agent.status) == (("calendar:read",), "suspended")
    assert agents.grant_of(FILED) is None


async def test_the_state_of_an_agent_in_a_file_is_kept_in_the_store(store: Store) -> None:
    await store.do(suspend(FILED, name="lobby", assumed="active"))
    agents = filed()
    await agents.follow(store)
    agent = agents.get(FILED)
    assert (agent.status, agent.scopes) == ("suspended", ("booking:*",))
    # The file may go; what became of the agent stays.
    without = Agents()
    await without.follow(store)
    left = without.get(FILED)
    assert (left.status, left.scopes) == ("suspended", ())


async def test_changes_are_taken_in_as_they_happen(store: Store) -> None:
    agents = filed()
    await agents.follow(store)
    assert agents.get(STORED) is None
    seen = agents.revision
    await store.do(put())
    await changed(agents, seen)
    assert agents.get(STORED) is not None
    seen = agents.revision
    await store.do(suspend(STORED))
    await changed(agents, seen)
    assert agents.get(STORED).status == "suspended"
    await agents.close()


async def test_an_unchanged_store_does_not_change_the_agents(store: Store) -> None:
    await store.do(put())
    agents = filed()
    await agents.follow(store)
    seen = agents.revision
    await agents.refresh()
    assert agents.revision == seen


async def test_many_agents_are_read_at_once(store: Store) -> None:
    await store.do(*(put(f"{number:064x}", f"agent-{number}") for number in range(40)))
    agents = Agents()
    await agents.follow(store)
    assert len(agents) == 40


async def test_a_document_that_cannot_be_read_leaves_an_agent_that_may_do_nothing(store: Store) -> None:
    await store.do(PutAgent(STORED, "desk", "active", '{"agent_id": 7}', "operator"))
    await store.do(PutAgent(FILED, "lobby", "active", put(STORED).document, "operator"))
    broken = json.dumps({"agent_id": "3" * 64, "name": "bar", "trust_tier": 9})
    await store.do(PutAgent("3" * 64, "bar", "active", broken, "operator"))
    agents = Agents()
    await agents.follow(store)
    for agent_id in (STORED, FILED, "3" * 64):
        assert (agents.get(agent_id).status, agents.grant_of(agent_id)) == ("unreadable", None)


async def test_a_broken_file_stays_refused_in_every_state_of_the_store(store: Store) -> None:
    await store.do(suspend(FILED, name="lobby", assumed="unreadable", allowed_from=frozenset({"unreadable"})))
    lift = SetAgentStatus(FILED, "REINSTATE", frozenset({"suspended"}), "active", "operator", "")
    await store.do(lift)
    agents = Agents([Agent(agent_id=FILED, name="lobby", status="unreadable")])
    await agents.follow(store)
    assert agents.get(FILED).status == "unreadable"


async def test_processes_that_learn_of_agents_one_by_one_or_at_once_list_them_alike(store: Store) -> None:
    early, late = filed(), filed()
    await early.follow(store)
    for number, name in (("4", "spa"), ("3", "desk"), ("5", "bar")):
        seen = early.revision
        await store.do(put(number * 64, name))
        await changed(early, seen)
    await late.follow(store)
    assert [agent.name for agent in early] == [agent.name for agent in late] == ["lobby", "bar", "desk", "spa"]
    assert early.updated == late.updated > 0.0


NEWS = make_endpoint("FETCH", "/news/today", dict)


@rows(
    "resource, fields, holds",
    ("*", {}, True),
    ("/news", {}, True),
    ("/", {}, True),
    ("/new", {}, False),
    ("/news/today", {}, True),
    ("FETCH /news/today", {}, True),
    ("BOOK /news/today", {}, False),
    ("FETCH /news", {}, False),
    ("/news", {"methods": ("BOOK",)}, False),
    ("/news", {"paths": ("/news/today",)}, True),
    ("/news", {"paths": ("/news",)}, False),
)
def test_grant_holds_for_resource_and_condition(resource: str, fields: dict[str, tuple[str, ...]], holds: bool) -> None:
    assert Grant("s", resource, ("a:b",), "g", 1e12, **fields).holds_for(NEWS) is holds


def test_the_private_half_of_a_key_signs() -> None:
    key = OKPKey.generate_key("Ed25519")
    signer = Signer(key)
    manifest = {"document_version": "v-1"}
    signer.sign_manifest(manifest)
    assert manifest[SIGNATURE_MEMBER].count(".") == signer.sign(b"{}").count(".") == 2
    assert signer.key_id == key.thumbprint()


def test_the_public_half_of_a_key_signs_nothing() -> None:
    with pytest.raises(ConfigError, match="private"):
        Signer(OKPKey.import_key(OKPKey.generate_key("Ed25519").as_dict(private=False)))
