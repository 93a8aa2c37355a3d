"""Which calls pass the policies on scopes and discovery, and which do not (AGTP-API 8.7)."""

from __future__ import annotations

import pytest
from tests.service import AGENT, Bench, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Context, Request
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.credentials import Authenticated
from bespeak.state.identity.settings import AuthSettings

PLAIN = make_endpoint("FETCH", "/menu", echo)
SCOPED = make_endpoint("BOOK", "/room", echo, scopes=("booking:room",))
DESK = Agent(agent_id=AGENT, name="desk", scopes=("booking:room",), wildcards=True)


def strict(*, agents: tuple[Agent, ...] = ()) -> Bench:
    return build(PLAIN, SCOPED, policies=Policies(scope_required_for_invocation=True), agents=agents)


@pytest.mark.requirement("CORE-2.3-7", "API-8.7-3")
def test_a_grant_counts_as_declared_and_an_empty_claim_gives_it_up() -> None:
    bench = strict(agents=(DESK,))
    assert bench.send("FETCH", "/menu", agent_id=AGENT).status == 200
    narrowed = bench.send("FETCH", "/menu", agent_id=AGENT, authority_scope="")
    assert (narrowed.status, narrowed.error["type"]) == (262, "scope-required")
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
    for bench in (proving(mode), proving(mode, agents=(DESK,))):
        reply = bench.send(*target)
        assert (reply.status, reply.error["type"], reply.error["modes"]) == (262, "credentials-missing", [mode])
        assert reply.error["message"].endswith(SEND[mode])
        assert status.to_http(reply.status, reply.error["type"]) == 401


def test_anonymous_caller_in_open_mode_is_told_what_to_declare() -> None:
    assert strict().send("FETCH", "/menu").error["message"].endswith("; send them in Authority-Scope.")
    assert strict().send("BOOK", "/room").error["message"].endswith("; send an Agent-ID.")
    for target in (("BOOK", "/room"), ("FETCH", "/menu")):
        error = strict(agents=(DESK,)).send(*target).error
        assert error["type"] == "credentials-missing"
        assert error["message"].endswith("; send the Agent-ID of an agent that is registered here.")


_GRANT = "the operator of this server must grant them to the agent"


@pytest.mark.parametrize(
    ("mode", "agents", "remedy"),
    [
        ("open", (), "send them in Authority-Scope"),
        ("open", (BARE,), _GRANT),
        ("token", (), "get a token with them"),
        ("token", (BARE,), f"{_GRANT}, and its token must not leave them out"),
        ("mtls", (), "the operator of this server must register the agent with them"),
        ("mtls", (BARE,), _GRANT),
        ("signed", (BARE,), _GRANT),
    ],
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
    assert bench.send(method, "/").status == 200
    assert bench.send("DISCOVER", "/methods").status == 200
    assert bench.send("DISCOVER", "/agents").status == 200


@pytest.mark.requirement("CORE-6.2-4", "API-8.7-2")
def test_discovery_for_agents_only_leaves_the_services_own_endpoints_alone() -> None:
    policies = Policies(anonymous_discovery=False, scope_required_for_invocation=False)
    bench = build(PLAIN, policies=policies)
    for method, path in (("DISCOVER", "/"), ("DESCRIBE", "/"), ("DISCOVER", "/methods"), ("DISCOVER", "/agents")):
        reply = bench.send(method, path)
        assert (reply.status, reply.error["type"]) == (262, "anonymous-discovery-disabled")
    assert bench.send("FETCH", "/menu").status == 200


@pytest.mark.requirement("CORE-7.6-7", "API-2-1")
@pytest.mark.parametrize(("accepted", "consents"), [(True, True), (True, False), (False, True), (False, False)])
def test_ad_hoc_calls_take_the_consent_of_both_sides_and_a_scope(accepted: bool, consents: bool) -> None:
    calls: list[str] = []

    def wildcard(context: Context) -> dict[str, str]:
        calls.append(context.path)
        return {}

    agent = Agent(agent_id=AGENT, name="explorer", wildcards=consents, scopes=("booking:room",))
    policies = Policies(wildcards_accepted=accepted)
    bench = build(policies=policies, agents=(agent,), wildcard_handler=wildcard)
    reply = bench.send("SCAN", "/attic", agent_id=AGENT)
    assert (reply.status == 200) is (accepted and consents)
    assert calls == (["/attic"] if accepted and consents else [])
    assert bench.send("SCAN", "/attic").status != 200
    if accepted and consents:
        without = bench.send("SCAN", "/attic", agent_id=AGENT, authority_scope="")
        assert (without.status, without.error["type"]) == (262, "scope-required")
    assert len(calls) <= 1
