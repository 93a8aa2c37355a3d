"""A probe of something hidden is answered like a probe of something that does not exist, on both faces."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.app.server.http_face import make_face
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.limits import Cost
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.exchange.messages import Connection

OLD = Deprecation(deprecated_in="1.0", removed_in="2.0", successor_method=None, successor_path=None)
TEXT = {"id": {"type": "string"}}
SCOPED = ("vault:open",)


def endpoints(**changes: Any) -> tuple[Endpoint, ...]:
    """Endpoints of every kind below /vault."""
    made = (
        make_endpoint("BOOK", "/vault", echo, properties=TEXT, scopes=SCOPED, impact="irreversible", deprecated=OLD),
        make_endpoint("FETCH", "/vault", echo, scopes=SCOPED),
        make_endpoint("FIND", "/vault/{id}", echo, properties=TEXT, scopes=SCOPED),
        make_endpoint("LIST", "/vault/doors", echo, properties=TEXT),
    )
    return tuple(replace(endpoint, namespace="vaults", **changes) for endpoint in made)


PUBLIC = replace(make_endpoint("LIST", "/menu", echo, properties=TEXT), namespace="rooms")
LEGACY = MethodPolicy(legacy=("GET", "PUT", "DELETE"))

METHODS = ("BOOK", "FETCH", "FIND", "LIST", "QUERY", "REMOVE", "DISCOVER", "DESCRIBE", "GET", "PUT", "DELETE", "BOOKK")
TARGETS = ("/vault", "/vault/1", "/vault/doors", "/vault/doors/1", "/vault?id=1", "/vault/book")
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"method_grammar": "AGIS/1.0"},
    {"task_id": "t1", "request_id": "r1", "idempotency_key": "k1", "session_id": "s" * 32},
    {"budget_limit": "calls=0"},
    {"if_none_match": "*"},
    {"accept": "application/vnd.agis"},
)
BODIES = (None, b"{broken", {"id": 1}, {"parameters": {}})


def answer(bench: Bench, method: str, target: str, body: Any, headers: dict[str, str]) -> tuple[Any, ...]:
    """Return everything a caller sees of an answer, except its own path and the random Response-ID."""
    bench.connection = Connection()  # the first answer of a connection introduces the server
    reply = bench.send(method, target, body, **headers)
    seen = dict((*reply.response.block.pairs, *reply.response.headers))
    assert seen.pop("Response-ID")
    return reply.status, seen, reply.response.body.replace(b"/vaunt", b"/vault")


def compare(bench: Bench, caller: dict[str, str]) -> None:
    for method in METHODS:
        for target in TARGETS:
            for headers in HEADERS:
                for body in BODIES:
                    existing = answer(bench, method, target, body, headers | caller)
                    missing = answer(bench, method, target.replace("/vault", "/vaunt"), body, headers | caller)
                    assert existing == missing, (method, target, headers, body)


@pytest.mark.requirement("API-8.7-2")
@pytest.mark.parametrize("methods", [MethodPolicy(), LEGACY, MethodPolicy(disallow=("FIND",), custom=("GLAZE",))])
def test_without_anonymous_discovery_a_stranger_cannot_tell_what_exists(methods: MethodPolicy) -> None:
    policies = Policies(anonymous_discovery=False, methods=methods)
    bench = build(PUBLIC, *endpoints(), policies=policies)
    compare(bench, {})
    refused = bench.send("BOOK", "/vault")
    assert (refused.status, refused.error["type"]) == (262, "anonymous-discovery-disabled")
    assert bench.send("BOOK", "/vault", scopes="vault:open").status == 200


def test_a_stranger_may_call_an_endpoint_without_scopes_but_learns_nothing_else_about_its_path() -> None:
    policies = Policies(anonymous_discovery=False, scope_required_for_invocation=False)
    bench = build(PUBLIC, *endpoints(), policies=policies)
    assert bench.send("LIST", "/menu").status == 200
    other = answer(bench, "BOOK", "/menu", None, {})
    assert other == answer(bench, "BOOK", "/vaunt", None, {}) == answer(bench, "LIST", "/vaunt", None, {})


@pytest.mark.parametrize("policies", [Policies(), Policies(methods=LEGACY), Policies(anonymous_discovery=False)])
@pytest.mark.parametrize("caller", [{}, {"agent_id": AGENT}, {"agent_id": AGENT, "authority_scope": "vault:look"}])
def test_an_internal_endpoint_does_not_exist_for_callers_without_the_authority_to_call_it(
    policies: Policies, caller: dict[str, str]
) -> None:
    internal = tuple(one for one in endpoints(internal=True) if one.required_scopes)
    bench = build(PUBLIC, *internal, policies=policies)
    compare(bench, caller)
    assert bench.send("BOOK", "/vault", scopes="vault:open").status == 200


def test_an_internal_endpoint_hides_no_public_template_from_callers_without_authority() -> None:
    public = make_endpoint("FIND", "/rooms/{id}", echo, properties=TEXT)
    internal = replace(make_endpoint("FIND", "/rooms/all", lambda: {"id": "every"}, scopes=SCOPED), internal=True)
    bench = build(public, internal)
    assert bench.send("FIND", "/rooms/all", agent_id=AGENT).json == {"id": "all"}
    assert bench.send("FIND", "/rooms/all", scopes="vault:open").json == {"id": "every"}
    assert bench.send("BOOK", "/rooms/all").error["allowed_methods_for_path"] == ["FIND"]


def test_agents_that_hold_the_scope_by_their_document_see_an_internal_endpoint() -> None:
    agent = Agent(agent_id=AGENT, name="guard", scopes=SCOPED)
    bench = build(*endpoints(internal=True), agents=(agent,))
    assert bench.send("FETCH", "/vault", agent_id=AGENT).status == 200


def test_strangers_are_introduced_to_the_built_in_methods_only() -> None:
    bench = build(*endpoints(), policies=Policies(anonymous_discovery=False))
    introduced = bench.send("DISCOVER", "/").header("Supported-Methods") or ""
    assert "DISCOVER" in introduced
    assert "BOOK" not in introduced
    assert "BOOK" in (bench.send("DISCOVER", "/", agent_id=AGENT).header("Supported-Methods") or "")


def test_the_costs_of_internal_endpoints_are_not_described() -> None:
    priced = replace(PUBLIC, internal=True, cost=Cost({"tokens": 5}))
    described = build(priced).send("DESCRIBE", "/", {"capability_domains": ["budget"]})
    assert described.json["result"] == {"budget_units_accepted": ["calls"]}


WEB_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BOOK")
WEB_TARGETS = ("/vault", "/vault:book", "/vault:fetch", "/vault/1:find", "/vault/doors", "/vault:list")
WEB_HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"x-agis-method": "BOOK"},
    {"x-agis-method": "FETCH", "x-agis-namespace": "vaults"},
    {"x-agis-namespace": "other"},
    {"origin": "http://rooms.test", "access-control-request-method": "POST"},
    {"if-none-match": "*", "accept": "text/html"},
)


async def _compare_web(bench: Bench, caller: dict[str, str]) -> None:
    face = make_face(bench.dispatcher, HttpSettings())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url="http://rooms.test") as http:

        async def ask(method: str, target: str, headers: dict[str, str]) -> tuple[Any, ...]:
            reply = await http.request(method, target, headers=headers | caller, content=b"{broken")
            shown = [pair for pair in reply.headers.multi_items() if pair[0] != "response-id"]
            return reply.status_code, shown, reply.content.replace(b"/vaunt", b"/vault")

        for method in WEB_METHODS:
            for target in WEB_TARGETS:
                for headers in WEB_HEADERS:
                    existing = await ask(method, target, headers)
                    missing = await ask(method, target.replace("/vault", "/vaunt"), headers)
                    assert existing == missing, (method, target, headers)


@pytest.mark.parametrize("methods", [MethodPolicy(), LEGACY])
def test_over_http_a_stranger_cannot_tell_what_exists(methods: MethodPolicy) -> None:
    policies = Policies(anonymous_discovery=False, methods=methods)
    asyncio.run(_compare_web(build(PUBLIC, *endpoints(), policies=policies), {}))


@pytest.mark.parametrize("caller", [{}, {"agent-id": AGENT}])
def test_over_http_an_internal_endpoint_does_not_exist_without_authority(caller: dict[str, str]) -> None:
    asyncio.run(_compare_web(build(PUBLIC, *endpoints(internal=True), policies=Policies()), caller))


def test_over_http_identified_callers_are_told_what_exists() -> None:
    async def run() -> list[tuple[int, str | None]]:
        face = make_face(build(*endpoints(), policies=Policies(anonymous_discovery=False)).dispatcher, HttpSettings())
        transport, known = httpx.ASGITransport(face), {"agent-id": AGENT}
        async with httpx.AsyncClient(transport=transport, base_url="http://rooms.test", headers=known) as http:
            replies = [await http.get(path) for path in ("/vaunt", "/vault")]
            replies.append(await http.options("/vault:fetch"))
            return [(reply.status_code, reply.headers.get("allow")) for reply in replies]

    assert asyncio.run(run()) == [(404, None), (405, "OPTIONS"), (204, "GET, HEAD, POST, OPTIONS")]


VALID: dict[str, dict[str, Any]] = {
    "ESCALATE": {"task_id": "t", "reason": "scope_limit", "context": {}},
    "CONFIRM": {"target_id": "t", "status": "accepted"},
    "SUSPEND": {"session_id": "s"},
}


@pytest.mark.parametrize("method", VALID)
def test_without_a_store_a_valid_call_is_a_501_that_says_so(method: str) -> None:
    for headers in ({}, {"agent-id": AGENT}):
        reply = build().send(method, "/", VALID[method], **headers)
        assert (reply.status, reply.error["code"]) == (501, "not-implemented")
        assert reply.error["missing"] == "a store to keep state in"


@pytest.mark.anyio
@pytest.mark.parametrize("method", VALID)
async def test_an_anonymous_caller_gets_262(method: str) -> None:
    async with keeping() as bench:
        reply = await bench.send(method, "/", VALID[method], agent=None)
        assert (reply.status, reply.error["type"]) == (262, "credentials-missing")


@pytest.mark.parametrize("method", VALID)
def test_parameters_are_checked_first(method: str) -> None:
    assert build().send(method, "/").status == 422
