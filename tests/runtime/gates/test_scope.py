"""Which calls pass the policies on scopes and discovery, and which do not (AGTP-API 8.7)."""

from __future__ import annotations

import pytest
from tests.service import AGENT, Bench, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.protocol.exchange.context import Context

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
    assert "the caller does not have" in given_up.error["message"]
    assert "in Authority-Scope" in strict().send("BOOK", "/room", agent_id=AGENT).error["message"]


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


@pytest.mark.requirement("CORE-7.6-7", "API-16.4-3")
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
