"""What a server discloses: a probe of something hidden is answered like one of something that does not exist."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.cases import rows
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.app.server.assembly import assemble
from bespeak.app.server.http_face import make_face
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.limits import Cost
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.exchange.headers import MEDIA_AGIS, MEDIA_MANIFEST
from bespeak.protocol.exchange.messages import Connection
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.methods.query import Fetch, list_resources, read_resource
from bespeak.runtime.route_table import CandidateIndex
from bespeak.runtime.server import Server
from bespeak.state.identity.settings import AuthSettings, SignedSettings
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

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
    assert bench.send("BOOK", "/vault").told("type") == (262, "anonymous-discovery-disabled")
    assert bench.send("BOOK", "/vault", scopes="vault:open").status == 200


def test_a_stranger_may_call_an_endpoint_without_scopes_but_learns_nothing_else_about_its_path() -> None:
    policies = Policies(anonymous_discovery=False, scope_required_for_invocation=False)
    bench = build(PUBLIC, *endpoints(), policies=policies)
    assert bench.send("LIST", "/menu").status == 200
    other = answer(bench, "BOOK", "/menu", None, {})
    assert other == answer(bench, "BOOK", "/vaunt", None, {}) == answer(bench, "LIST", "/vaunt", None, {})


@pytest.mark.parametrize("policies", [Policies(), Policies(methods=LEGACY), Policies(anonymous_discovery=False)])
@pytest.mark.parametrize("caller", [{}, {"agent_id": AGENT}, {"agent_id": AGENT, "authority_scope": "vault:look"}])
def test_internal_endpoint_is_unknown_to_callers_without_authority(policies: Policies, caller: dict[str, str]) -> None:
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


def test_internal_endpoints_are_seen_with_their_scope_and_their_costs_not_described() -> None:
    agent = Agent(agent_id=AGENT, name="guard", scopes=SCOPED)
    assert build(*endpoints(internal=True), agents=(agent,)).send("FETCH", "/vault", agent_id=AGENT).status == 200
    priced = replace(PUBLIC, internal=True, cost=Cost({"tokens": 5}))
    described = build(priced).send("DESCRIBE", "/", {"capability_domains": ["budget"]})
    assert described.json["result"] == {"budget_units_accepted": ["calls"]}


def test_strangers_are_introduced_to_the_built_in_methods_only() -> None:
    bench = build(*endpoints(), policies=Policies(anonymous_discovery=False))
    introduced = bench.send("DISCOVER", "/").header("Supported-Methods") or ""
    assert "DISCOVER" in introduced
    assert "BOOK" not in introduced
    assert "BOOK" in (bench.send("DISCOVER", "/", agent_id=AGENT).header("Supported-Methods") or "")


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
async def test_an_anonymous_caller_gets_262(bench: StatefulBench, method: str) -> None:
    assert (await bench.send(method, "/", VALID[method], agent=None)).told("type") == (262, "credentials-missing")


@pytest.mark.parametrize("method", VALID)
def test_parameters_are_checked_first(method: str) -> None:
    assert build().send(method, "/").status == 422


REGISTRAR = build(make_endpoint("BOOK", "/room", echo), agents=(Agent(agent_id=AGENT, name="ada"),)).server.registrar


def test_a_server_has_everything_its_methods_need() -> None:
    auth = AuthSettings(modes=("signed",), signed=SignedSettings())
    signer = Signer(OKPKey.generate_key("Ed25519"))
    server = Server(REGISTRAR, updated="2026-01-01T00:00:00Z", signer=signer, auth=auth)
    assert server.principals.authenticator is not None
    assert server.principals.key_of("test.example") == signer.private_key.public_key()
    assert ("BOOK", "/room") in server.routes.endpoints
    assert server.routes.updated == "2026-01-01T00:00:00Z"


def test_two_servers_of_one_service_share_routes_and_no_state() -> None:
    first, second = (Server(REGISTRAR, updated="2026-01-01T00:00:00Z") for _ in range(2))
    assert first.routes.direct["/room"]["BOOK"] is second.routes.direct["/room"]["BOOK"]
    assert first.agents is not second.agents


async def published(server: Server, store: Store) -> tuple[Any, Any]:
    """Return the manifest and the first agent's identity of a server that starts and stops."""
    await store.start()
    await server.start()
    publication = server.routes.publication
    documents = (publication.manifest_for(ANONYMOUS), publication.identity_of(next(iter(server.agents))))
    await server.close()
    await store.close()
    manifest, identity = (msgspec.json.decode(document.body) for document in documents)
    return manifest["server"], identity


@pytest.mark.anyio
@pytest.mark.requirement("API-8.3-1", "API-8.3-3", "API-8.3-4")
async def test_times_of_the_manifest_survive_restarts_until_it_changes(tmp_path: Path) -> None:
    identity = replace(REGISTRAR.service.identity, contact="other@test.example")
    changed = assemble(replace(REGISTRAR.service, identity=identity)).registrar
    seen = []
    for year, registrar in ((2026, REGISTRAR), (2027, REGISTRAR), (2028, changed)):
        store = open_store(str(tmp_path / "store.db"), role="sole")
        times = {"updated": f"{year}-01-01T00:00:00Z", "issued": f"{year}-09-09T00:00:00Z"}
        block, identity = await published(Server(registrar, **times, store=store), store)
        seen.append((block["server_id"], block["issued"], block["updated"], identity["issued_at"]))
    first = "2026-01-01T00:00:00Z"
    assert seen == [
        ("test.example", first, first, first),
        ("test.example", first, first, first),
        ("test.example", first, "2028-01-01T00:00:00Z", first),
    ]


@pytest.mark.anyio
async def test_time_of_first_issue_that_the_operator_names_takes_precedence() -> None:
    identity = replace(REGISTRAR.service.identity, issued="2020-01-01T00:00:00Z")
    assembled = assemble(replace(REGISTRAR.service, identity=identity), updated="2026-01-01T00:00:00Z")
    store = open_store("memory", role="sole")
    block, _ = await published(Server(assembled.registrar, updated=assembled.updated, store=store), store)
    assert block["issued"] == "2020-01-01T00:00:00Z"


@pytest.mark.parametrize("require_known", [None, True, False])
@pytest.mark.parametrize("agents", [(), (Agent(agent_id=AGENT, name="desk"),)])
@pytest.mark.anyio
async def test_admitting_unknown_agents_beside_registered_ones_is_said_at_the_start(
    require_known: bool | None, agents: tuple[Agent, ...], caplog: pytest.LogCaptureFixture
) -> None:
    await build(agents=agents, require_known_agents=require_known).server.start()
    said = "agents that are not registered are admitted with any scope they claim" in caplog.text
    assert said == (bool(agents) and require_known is False)


OPEN = make_endpoint("FIND", "/rooms", echo, output={"type": "object"}, capability="discovery")
HIDDEN = replace(make_endpoint("AUDIT", "/ledger", echo), internal=True)
BESIDE = replace(make_endpoint("RECONCILE", "/rooms", echo), internal=True)


@pytest.fixture
def hiding() -> Bench:
    return build(OPEN, HIDDEN, BESIDE)


def test_internal_endpoints_answer_and_are_not_published(hiding: Bench) -> None:
    assert hiding.send("AUDIT", "/ledger").status == 200
    assert hiding.send("BOOK", "/ledger").status == 404
    assert hiding.send("BOOK", "/rooms").error["allowed_methods_for_path"] == ["FIND"]


@rows(
    "method, target, body, headers",
    ("DISCOVER", "/", None, {}),
    ("DISCOVER", "/", None, {"accept": MEDIA_AGIS}),
    ("DISCOVER", "/methods", None, {}),
    ("DISCOVER", "/", {"criteria": "audit the ledger, reconcile rooms"}, {"agent_id": AGENT}),
    ("DESCRIBE", "/", None, {}),
    ("BOOK", "/rooms", None, {}),
    ("BOOK", "/ledger", None, {}),
)
def test_no_document_and_no_refusal_names_an_internal_endpoint(
    hiding: Bench, method: str, target: str, body: Any, headers: dict[str, str]
) -> None:
    reply = hiding.send(method, target, body, **headers)
    text = reply.response.body.decode()
    # The path that was asked for may be repeated; that something answers there may not.
    assert "AUDIT" not in text
    assert "RECONCILE" not in text
    assert "ledger" not in text.replace("/ledger'", "").replace('"/ledger"', "")


CONCIERGE = Agent(agent_id=AGENT, name="concierge", description="Helps guests.")


def candidates(*endpoints: Endpoint, agents: tuple[Agent, ...] = ()) -> CandidateIndex:
    server = build(*endpoints, agents=agents).server
    return CandidateIndex(server.routes.endpoints.values(), server.agents)


@pytest.mark.requirement("CORE-4.2-6")
def test_endpoints_and_disclosed_agents_are_found_in_the_number_asked_for() -> None:
    found = candidates(make_endpoint("BOOK", "/room", echo), agents=(CONCIERGE,))
    assert {entry["kind"] for entry in found.find("guests room", 10, agents=True)} == {"endpoint", "agent"}
    assert found.find("summarize", 10, agents=True) == []
    assert [entry["kind"] for entry in found.find("guests room", 10, agents=False)] == ["endpoint"]
    endpoints = [make_endpoint("FETCH", f"/rooms/floor{number}", echo) for number in range(9)]
    assert len(candidates(*endpoints).find("rooms", 4, agents=True)) == 4


@pytest.mark.requirement("CORE-4.2-5")
async def test_agents_are_found_with_their_principal_and_hidden_documents_not() -> None:
    [entry] = candidates(agents=(replace(CONCIERGE, principal="Acme"),)).find("guests", 10, agents=True)
    assert 0 < entry.pop("relevance") <= 1
    about = {"agent_id": AGENT, "name": "concierge", "description": "Helps guests.", "principal": "Acme"}
    assert entry == {"kind": "agent", **about}
    fetch = documents(agis=b"{}")
    assert [entry["name"] for entry in await list_resources(SERVER, fetch)] == ["agis"]
    assert await read_resource(SERVER, f"{BASE}/manifest", fetch) is None
    assert await read_resource(SERVER, f"{BASE}/lint", fetch) is None


@pytest.mark.requirement("CORE-7.4-2")
@pytest.mark.parametrize("fields", [{"status": "suspended"}, {"status": "retired"}, {"trust_tier": 3}])
def test_inactive_and_experimental_agents_are_not_found(fields: dict[str, Any]) -> None:
    assert candidates(agents=(replace(CONCIERGE, **fields),)).find("guests", 10, agents=True) == []


SERVER = "Rooms.example:8443"
BASE = "bespeak://rooms.example:8443"


def documents(manifest: bytes | None = None, agis: bytes | None = None) -> Fetch:
    async def fetch(media_type: str) -> bytes | None:
        return manifest if media_type == MEDIA_MANIFEST else agis

    return fetch


async def test_documents_have_a_size_and_a_report_has_none_before_it_is_made() -> None:
    found = await list_resources(SERVER, documents(b'{"agtp_version": "1.0"}', b"{}"))
    assert [(entry["uri"], entry.get("size")) for entry in found] == [
        (f"{BASE}/manifest", 23),
        (f"{BASE}/agis", 2),
        (f"{BASE}/lint", None),
    ]


async def test_a_report_is_about_the_manifest_that_the_caller_sees() -> None:
    for number in range(2):
        manifest = json.dumps({"agtp_version": str(number), "catalog_version": "9.9.9"}).encode()
        read = await read_resource(SERVER, f"{BASE}/lint", documents(manifest))
        assert json.loads(read["text"])["files"] == [f"{BASE}/manifest"]
        assert read["mimeType"] == "application/json"
