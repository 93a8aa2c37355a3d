"""Identification with authentication: only credentials count."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys

from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.messages import Connection, Context, Request
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call
from bespeak.runtime.gates.authority import identity_gate
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.principals import Principals
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.credentials import Authenticated, Outdated
from bespeak.state.identity.delegation import LONGEST_CHAIN, Claims, sign_token, token_hash
from bespeak.state.identity.settings import AuthSettings, SignedSettings, TokenSettings
from bespeak.state.identity.signed_request import sign_request

SERVER = "test.example"
STRANGER = "c" * 64
THIRD = "e" * 64
ISSUER = new_key()
AGENT_KEY = Ed25519PrivateKey.generate()
KEYS = {AGENT: AGENT_KEY, STRANGER: Ed25519PrivateKey.generate(), THIRD: Ed25519PrivateKey.generate()}
PUBLIC_KEYS = {
    agent: {"kty": "OKP", "crv": "Ed25519", "x": encode64(key.public_key().public_bytes_raw()).decode()}
    for agent, key in KEYS.items()
}
PUBLIC = PUBLIC_KEYS[AGENT]
DESK = Agent(agent_id=AGENT, name="desk", scopes=("booking:*",), public_key=PUBLIC, principal_id="acme", trust_tier=1)
ENDPOINTS = (
    make_endpoint("BOOK", "/room", echo, scopes=("booking:room",)),
    make_endpoint("FETCH", "/menu", lambda context: {"agent": context.agent_id, "by": context.principal.verified}),
)


def served(folder: Path, *modes: str, **fields: Any) -> Bench:
    bench = build(*ENDPOINTS, **{"agents": (DESK,), **fields})
    settings = AuthSettings(
        modes=modes,
        token=TokenSettings(keys=write_keys(folder / "keys.json", public(ISSUER, kid="k"))),
        signed=SignedSettings(max_age=60),
    )
    principals = bench.server.principals
    principals.authenticator = Authenticator(settings, SERVER, principals.key_of)
    return bench


def token(**changes: Any) -> str:
    now = int(time.time())
    given = claims(agent_id=AGENT, aud=SERVER, iat=now, exp=now + 600, scope=None)
    return "Bearer " + sign(ISSUER, {**given, **changes}, kid="k")


@pytest.mark.requirement("CORE-6.1-1")
def test_an_agent_is_believed_with_its_proof_and_not_by_a_header_alone(tmp_path: Path) -> None:
    bench = served(tmp_path, "token")
    assert bench.send("BOOK", "/room", agent_id=AGENT).refusal == (401, "agent-unauthenticated")
    assert bench.send("BOOK", "/room", scopes="booking:room").status == 401
    assert bench.send("BOOK", "/room", authorization=token()).status == 200
    assert bench.send("FETCH", "/menu", authorization=token()).json == {"agent": AGENT, "by": "token"}
    call = Call(Request("FETCH", "/menu", "", {"authorization": token()}, b"", Connection()), bench.server)
    assert identity_gate(call) is None
    assert (call.principal.principal_id, call.principal.trust_tier, call.principal.known) == ("acme", 1, True)


@pytest.mark.requirement("CORE-7.6-1")
def test_a_token_narrows_and_no_chain_to_itself_widens_it(tmp_path: Path) -> None:
    bench = served(tmp_path, "token")
    assert bench.send("BOOK", "/room", authorization=token(scope="booking:room payments:buy")).status == 200
    narrow = bench.send("BOOK", "/room", authorization=token(scope="booking:table"))
    assert (narrow.status, narrow.error["missing_scopes"]) == (455, ["booking:room"])
    beyond = bench.send("BOOK", "/room", authorization=token(scope="booking:table"), authority_scope="booking:room")
    assert (beyond.status, beyond.error["code"]) == (262, "scope-claim-invalid")
    chain = signed_chain([AGENT, AGENT], [["booking:*"]])
    narrow = token(scope="calendar:read")
    assert bench.send("BOOK", "/room", authorization=narrow).status == 455
    reply = bench.send("BOOK", "/room", authorization=narrow, delegation_chain=chain)
    assert (reply.status, reply.error["reason"]) == (551, "repeated-agent")


def test_an_unknown_agent_with_a_token_has_the_scopes_of_the_token(tmp_path: Path) -> None:
    for admitting in ({"agents": ()}, {"require_known_agents": False}):
        bench = served(tmp_path, "token", **admitting)
        assert bench.send("BOOK", "/room", authorization=token(agent_id=STRANGER, scope="booking:room")).status == 200
        assert bench.send("BOOK", "/room", authorization=token(agent_id=STRANGER)).status == 455
    for refusing in ({}, {"agents": (), "require_known_agents": True}):
        bench = served(tmp_path, "token", **refusing)
        reply = bench.send("BOOK", "/room", authorization=token(agent_id=STRANGER, scope="booking:room"))
        assert (reply.status, reply.error["code"]) == (401, "agent-unknown")


@pytest.mark.requirement("CORE-6.2-3")
def test_a_caller_without_credentials_is_anonymous_and_cannot_claim_authority(tmp_path: Path) -> None:
    bench = served(tmp_path, "token")
    assert bench.send("FETCH", "/menu").json["agent"] is None
    nobody = bench.send("BOOK", "/room").error
    assert (nobody["type"], nobody["modes"]) == ("credentials-missing", ["token"])
    assert nobody["message"].endswith("; send a token (Authorization: Bearer TOKEN).")
    for headers in ({"authority_scope": "booking:room"}, {"delegation_chain": "a.b.c"}):
        reply = bench.send("FETCH", "/menu", **headers)
        assert (reply.status, reply.error["type"], reply.error["modes"]) == (262, "credentials-missing", ["token"])


def signed_chain(path: Sequence[str], scopes: Sequence[Sequence[str]]) -> str:
    """Sign a chain of hops with the keys of its delegators."""
    now, tokens = int(time.time()), list[str]()
    for number, (one, other) in enumerate(itertools.pairwise(path)):
        claims = Claims(
            iss=one,
            sub=other,
            aud=SERVER,
            scope=tuple(scopes[number]),
            depth=LONGEST_CHAIN - 1 - number,
            exp=now + 60,
            iat=now,
            jti=f"token-{number}",
            parent=token_hash(tokens[-1]) if tokens else None,
        )
        tokens.append(sign_token(claims, KEYS[one]))
    return ", ".join(tokens)


@pytest.mark.requirement("CORE-7.6-1")
def test_token_limits_the_authority_that_its_holder_was_delegated(tmp_path: Path) -> None:
    bench = served(tmp_path, "token", agents=(DESK, Agent(agent_id=STRANGER, name="stranger")))
    chain = signed_chain([AGENT, STRANGER], [["booking:*"]])
    for scope, expected in ((None, 200), ("booking:room", 200), ("booking:table", 455)):
        credential = token(agent_id=STRANGER, scope=scope)
        assert bench.send("BOOK", "/room", authorization=credential, delegation_chain=chain).status == expected
    beyond = bench.send(
        "BOOK",
        "/room",
        authorization=token(agent_id=STRANGER, scope="booking:table"),
        delegation_chain=chain,
        authority_scope="booking:room",
    )
    assert (beyond.status, beyond.error["code"]) == (262, "scope-claim-invalid")
    assert "the Delegation-Chain and the credential do not grant" in beyond.error["message"]


near = st.lists(st.sampled_from("ab*"), min_size=2, max_size=3).map(":".join)
"""Scopes of an alphabet so small that they often cover each other."""
some_scopes = st.lists(near, min_size=1, max_size=3, unique=True)


@pytest.mark.requirement("CORE-7.6-1")
@given(
    grant=some_scopes,
    path=st.lists(st.sampled_from((AGENT, STRANGER, THIRD)), min_size=2, max_size=4),
    hops=st.lists(some_scopes, min_size=3, max_size=3),
    credential=st.none() | some_scopes,
)
def test_no_chain_gives_more_than_grant_token_and_each_hop(
    grant: list[str], path: list[str], hops: list[list[str]], credential: list[str] | None
) -> None:
    agents = [Agent(agent_id=one, name=one[:8], scopes=tuple(grant), public_key=PUBLIC_KEYS[one]) for one in KEYS]
    principals = Principals(Agents(agents), SERVER, require_known=True)
    limit = None if credential is None else Scopes(credential)
    own = principals.prove(Authenticated(path[-1], ("token",), limit), None)
    assert isinstance(own, Principal)
    found = principals.delegate(own, signed_chain(path, hops), None, limit)
    if isinstance(found, Refused):
        assert found.status == 551
        return
    assert len(set(path)) == len(path)
    for bound in (grant, *hops[: len(path) - 1], *([] if credential is None else [credential])):
        assert Scopes(bound).missing(list(found.scopes)) == []


def test_an_invalid_chain_of_a_proven_agent_is_a_551(tmp_path: Path) -> None:
    reply = served(tmp_path, "token").send("BOOK", "/room", authorization=token(), delegation_chain="a.b.c")
    assert (reply.status, reply.error["hop"]) == (551, 1)


def test_unknown_keys_ask_for_new_ones_and_are_refused_when_there_are_none(tmp_path: Path) -> None:
    bench = served(tmp_path, "token")
    other = new_key()
    now = int(time.time())
    given = claims(agent_id=AGENT, aud=SERVER, iat=now, exp=now + 600)
    headers = {"authorization": "Bearer " + sign(other, given, kid="new")}
    request = Request("FETCH", "/menu", "", headers, b"", Connection())
    settled = Call(request, bench.server)
    refused = identity_gate(settled)
    assert refused is not None
    assert isinstance(refused, Refused)
    assert refused.status == 401
    write_keys(tmp_path / "keys.json", public(ISSUER, kid="k"), public(other, kid="new"))
    assert isinstance(identity_gate(Call(request, bench.server)), Outdated)


def signed(bench: Bench, key: Ed25519PrivateKey = AGENT_KEY, **headers: str) -> Call:
    given = {"agent-id": AGENT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    given["agent-signature"] = sign_request("BOOK", "/room", given, b"{}", key=key, server_id=SERVER, now=time.time())
    return Call(Request("BOOK", "/room", "", given, b"{}", Connection()), bench.server)


def test_a_signature_proves_a_registered_agent_and_leaves_its_nonce_to_be_used_once(tmp_path: Path) -> None:
    bench = served(tmp_path, "signed")
    call = signed(bench)
    assert identity_gate(call) is None
    assert (call.principal.agent_id, call.principal.verified) == (AGENT, "signed")
    assert call.nonce is not None
    value, seconds = call.nonce
    assert value.startswith(f"{AGENT}:")
    assert 1 <= seconds <= 91
    forged = signed(bench, Ed25519PrivateKey.generate())
    refused = identity_gate(forged)
    assert (refused.status, refused.code, forged.nonce) == (401, "signature-invalid", None)


@pytest.mark.parametrize("scope", ["booking:room\x1f", "booking:\x00room", "booking:room\r", "booking:room\x85"])
def test_a_scope_with_a_control_character_is_a_400(tmp_path: Path, scope: str) -> None:
    bench = served(tmp_path, "token")
    reply = bench.send("BOOK", "/room", authorization=token(), authority_scope=scope)
    assert (reply.status, reply.error["code"]) == (400, "invalid-authority-scope")
    assert build(*ENDPOINTS).send("BOOK", "/room", agent_id=AGENT, authority_scope=scope).status == 400


@pytest.mark.requirement("CORE-6.2-4")
def test_discovery_that_is_not_public_requires_proof(tmp_path: Path) -> None:
    bench = served(tmp_path, "token", policies=Policies(anonymous_discovery=False))
    assert bench.send("DISCOVER", "/").error["type"] == "anonymous-discovery-disabled"
    assert bench.send("DISCOVER", "/methods", authorization=token()).status == 200


PLAIN = make_endpoint("FETCH", "/menu", echo)
SCOPED = make_endpoint("BOOK", "/room", echo, scopes=("booking:room",))
SCOPE_DESK = Agent(agent_id=AGENT, name="desk", scopes=("booking:room",), wildcards=True)


def strict(*, agents: tuple[Agent, ...] = ()) -> Bench:
    return build(PLAIN, SCOPED, policies=Policies(scope_required_for_invocation=True), agents=agents)


@pytest.mark.requirement("CORE-2.3-7", "API-8.7-3")
def test_a_grant_counts_as_declared_and_an_empty_claim_gives_it_up() -> None:
    bench = strict(agents=(SCOPE_DESK,))
    assert bench.send("FETCH", "/menu", agent_id=AGENT).status == 200
    assert bench.send("FETCH", "/menu", agent_id=AGENT, authority_scope="").told("type") == (262, "scope-required")
    given_up = bench.send("BOOK", "/room", agent_id=AGENT, authority_scope="")
    assert given_up.status == 455
    assert given_up.error["message"].endswith("leave it out to use everything that is granted to the agent.")


class Proof(Authenticator):
    """Believes a header in a mode: what proof looks like is shown elsewhere."""

    def authenticate(self, request: Request) -> Authenticated | None:
        agent_id = request.headers.get("agent-id")
        return Authenticated(agent_id, self.modes) if agent_id is not None else None


def proving(mode: str, *, agents: tuple[Agent, ...] = ()) -> Bench:
    bench = strict(agents=agents)
    proof = Proof(AuthSettings(), "test.example")
    proof.modes = (mode,)
    bench.server.principals.authenticator = proof
    return bench


BARE = Agent(agent_id=AGENT, name="desk")
SEND = {
    "token": "send a token (Authorization: Bearer TOKEN).",
    "mtls": "send a client certificate (TLS).",
    "signed": "send a signature (Agent-Signature).",
}


@pytest.mark.parametrize("mode", SEND)
@pytest.mark.parametrize("target", [("BOOK", "/room"), ("FETCH", "/menu")])
@pytest.mark.requirement("CORE-6.2-3")
def test_anonymous_caller_is_told_which_credential_to_send(mode: str, target: tuple[str, str]) -> None:
    for bench in (proving(mode), proving(mode, agents=(SCOPE_DESK,))):
        reply = bench.send(*target)
        assert (reply.status, reply.error["type"], reply.error["modes"]) == (262, "credentials-missing", [mode])
        assert reply.error["message"].endswith(SEND[mode])
        assert status.to_http(reply.status, reply.error["type"]) == 401


def test_anonymous_caller_in_open_mode_is_told_what_to_declare() -> None:
    assert strict().send("FETCH", "/menu").error["message"].endswith("; send them in Authority-Scope.")
    assert strict().send("BOOK", "/room").error["message"].endswith("; send an Agent-ID.")
    for target in (("BOOK", "/room"), ("FETCH", "/menu")):
        error = strict(agents=(SCOPE_DESK,)).send(*target).error
        assert error["type"] == "credentials-missing"
        assert error["message"].endswith("; send the Agent-ID of an agent that is registered here.")


_GRANT = "the operator of this server must grant them to the agent"


@rows(
    "mode, agents, remedy",
    ("open", (), "send them in Authority-Scope"),
    ("open", (BARE,), _GRANT),
    ("token", (), "get a token with them"),
    ("token", (BARE,), f"{_GRANT}, and its token must not leave them out"),
    ("mtls", (), "the operator of this server must register the agent with them"),
    ("mtls", (BARE,), _GRANT),
    ("signed", (BARE,), _GRANT),
)
@pytest.mark.parametrize(("target", "number"), [(("BOOK", "/room"), 455), (("FETCH", "/menu"), 262)])
def test_caller_without_the_scope_is_told_how_it_can_get_it(
    mode: str, agents: tuple[Agent, ...], remedy: str, target: tuple[str, str], number: int
) -> None:
    bench = strict(agents=agents) if mode == "open" else proving(mode, agents=agents)
    reply = bench.send(*target, agent_id=AGENT)
    assert reply.status == number
    assert reply.error["message"].endswith(f"; {remedy}.")


@pytest.mark.requirement("API-8.7-9")
@pytest.mark.parametrize("method", ["DISCOVER", "DESCRIBE"])
def test_discovery_takes_no_scope(method: str) -> None:
    bench = strict()
    assert (bench.send(method, "/").status, bench.send("DISCOVER", "/methods").status) == (200, 200)
    assert bench.send("DISCOVER", "/agents").status == 200


@pytest.mark.requirement("CORE-6.2-4", "API-8.7-2")
def test_discovery_for_agents_only_leaves_the_services_own_endpoints_alone() -> None:
    policies = Policies(anonymous_discovery=False, scope_required_for_invocation=False)
    bench = build(PLAIN, policies=policies)
    for method, path in (("DISCOVER", "/"), ("DESCRIBE", "/"), ("DISCOVER", "/methods"), ("DISCOVER", "/agents")):
        assert bench.send(method, path).told("type") == (262, "anonymous-discovery-disabled")
    assert bench.send("FETCH", "/menu").status == 200


@pytest.mark.requirement("CORE-7.6-7", "API-2-1")
@pytest.mark.parametrize(("accepted", "consents"), [(True, True), (True, False), (False, True), (False, False)])
def test_ad_hoc_calls_take_the_consent_of_both_sides_and_a_scope(accepted: bool, consents: bool) -> None:
    calls: list[str] = []

    async def wildcard(context: Context) -> dict[str, str]:
        calls.append(context.path)
        return {}

    agent = Agent(agent_id=AGENT, name="explorer", wildcards=consents, scopes=("booking:room",))
    policies = Policies(wildcards_accepted=accepted, scope_required_for_invocation=True)
    bench = build(policies=policies, agents=(agent,), wildcard_handler=wildcard)
    assert (bench.send("SCAN", "/attic", agent_id=AGENT).status == 200) is (accepted and consents)
    assert calls == (["/attic"] if accepted and consents else [])
    assert bench.send("SCAN", "/attic").status != 200
    if accepted and consents:
        assert bench.send("SCAN", "/attic", agent_id=AGENT, authority_scope="").told("type") == (262, "scope-required")
    assert len(calls) <= 1
