"""/agents and disclosure: which callers may see the hosted agents and their documents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.process import serving
from tests.service import AGENT, Bench, Reply, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.app.server.assembly import assemble
from bespeak.app.server.connect import connect_sync
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.agent import Agent, Genesis
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Deprecation
from bespeak.contract.handler import UPSTREAM_ERRORS, ExternalService
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.service import DataClass, DataManifest, ServerIdentity, Service
from bespeak.documents.manifest_json import parse_manifest
from bespeak.documents.projections.agent_documents import canonical_namespace
from bespeak.documents.projections.manifest_signature import verify_content
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.route_table import Publication
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.credentials import Authenticated
from bespeak.state.identity.jws import generate_key, key_id, parse_jwk, public_jwk
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.commands.agents import PutAgent, SetAgentStatus

OTHER = "b" * 64
CONCIERGE = Agent(agent_id=AGENT, name="Front Desk", description="Helps guests.", scopes=("booking:room",))


class ByHeader(Authenticator):
    """Believes a header: what proof looks like is shown elsewhere."""

    def authenticate(self, request: Request) -> Authenticated | None:
        agent_id = request.headers.get("agent-id")
        return Authenticated(agent_id, ("token",)) if agent_id is not None else None


def served(agent: Agent = CONCIERGE, *, disclosure: str = "public", proof: bool = False, **fields: Any) -> Bench:
    bench = build(agents=(agent,), agent_disclosure=disclosure, require_known_agents=False, **fields)
    if proof:
        bench.server.principals.authenticator = ByHeader(AuthSettings(), "test.example")
    return bench


def hosted(reply: Reply) -> list[str]:
    return [agent["agent_id"] for agent in reply.json["hosted_agents"]]


@pytest.mark.requirement("CORE-3-13")
@pytest.mark.parametrize("method", ["DISCOVER", "DESCRIBE"])
def test_the_namespace_document_lists_the_agents(method: str) -> None:
    reply = served().send(method, "/agents")
    assert (reply.status, reply.json["document_type"], reply.json["total_active"]) == (200, "agtp-namespace", 1)
    [entry] = reply.json["agents"]
    assert (entry["agent_label"], entry["canonical_id"], entry["lifecycle_state"]) == ("Front-Desk", AGENT, "active")
    assert served().send("DISCOVER", "/", {"target": "agents"}).json["agents"] == reply.json["agents"]


@pytest.mark.requirement("CORE-7.3-10")
@pytest.mark.parametrize("fields", [{"status": "suspended"}, {"status": "deprecated"}, {"trust_tier": 3}])
def test_inactive_and_experimental_agents_are_not_listed(fields: dict[str, Any]) -> None:
    bench = served(replace(CONCIERGE, **fields))
    assert bench.send("DISCOVER", "/agents").json["agents"] == []
    assert hosted(bench.send("DISCOVER", "/")) == []


@pytest.mark.requirement("CORE-3-1", "CORE-3-12")
@pytest.mark.parametrize("method", ["DISCOVER", "DESCRIBE"])
@pytest.mark.parametrize("name", ["front-desk", "FRONT-DESK", "Front-Desk"])
def test_an_agent_is_found_by_its_label_in_any_case(method: str, name: str) -> None:
    reply = served().send(method, f"/agents/{name}")
    assert (reply.status, reply.header("Content-Type")) == (200, "application/vnd.agtp.identity+json")
    assert reply.json.items() >= {"agent_id": AGENT, "document_type": "agtp-identity", "status": "active"}.items()
    assert reply.header("ETag")
    assert served().send(method, "/agents/nobody").refusal == (404, "agent-not-found")


@pytest.mark.requirement("CORE-3-2")
@rows(
    "target, location",
    ("/agents/front-desk.agent", "/agents/front-desk"),
    ("/agents/front-desk.nomo?format=json", "/agents/front-desk?format=json"),
    ("/agents/nobody.agtp", "/agents/nobody"),
    ("/agents/front-desk.agent/status", "/agents/front-desk/status"),
)
def test_a_name_with_a_file_extension_is_redirected_to_the_name(target: str, location: str) -> None:
    reply = served().send("DESCRIBE", target)
    assert (reply.status, reply.error["code"], reply.header("Location")) == (301, "moved-permanently", location)


@pytest.mark.requirement("CORE-3-3", "CORE-3-12")
@pytest.mark.parametrize("name", ["a%20b", "%C3%A4", ".agent", "a~b"])
def test_a_name_that_no_agent_can_have_is_400(name: str) -> None:
    assert served().send("DESCRIBE", f"/agents/{name}").refusal == (400, "invalid-uri-form")


@pytest.mark.requirement("CORE-3-4")
def test_formats_of_a_document_about_an_agent() -> None:
    record = {"agent_id": AGENT, "name": "Front Desk", "issuer": "Acme", "signature": "s"}
    genesis = Genesis(
        **dict.fromkeys(("owner", "owner_id", "principal_id", "archetype", "governance_zone", "issued_at"), ""),
        agent_id=AGENT,
        name="Front Desk",
        scopes=(),
        issuer="Acme",
        issuer_key={},
        public_key=None,
        trust_tier=2,
        verification_path="self-signed",
        document=record,
    )
    bench = served(replace(CONCIERGE, genesis=genesis))
    plain, readable, compact, certificate, state = (
        bench.send("DESCRIBE", f"/agents/front-desk{query}")
        for query in ("", "?format=manifest", "?format=json", "?format=certificate", "?format=status")
    )
    assert plain.response.body == readable.response.body
    assert (b"\n  " in readable.response.body, b"\n" in compact.response.body) == (True, False)
    assert compact.json == readable.json
    assert certificate.json == record
    assert (state.json["document_type"], state.json["lifecycle_state"]) == ("agtp-status", "active")
    assert bench.send("DESCRIBE", "/", {"agent_id": AGENT, "format": "status"}).json["canonical_id"] == AGENT
    assert bench.send("DESCRIBE", "/agents/front-desk?format=xml").status == 422
    assert served().send("DESCRIBE", "/agents/front-desk?format=certificate").refusal == (404, "genesis-not-found")


@pytest.mark.requirement("CORE-3-5")
@pytest.mark.parametrize("state", ["active", "suspended", "retired"])
def test_the_status_of_an_agent_is_shown_in_every_state(state: str) -> None:
    bench = served(replace(CONCIERGE, status=state, updated_at="2026-05-01T00:00:00Z"))
    reply = bench.send("DESCRIBE", "/agents/Front-Desk/status")
    assert reply.gives("lifecycle_state", "last_updated") == (200, state, "2026-05-01T00:00:00Z")
    assert bench.send("DESCRIBE", "/agents/nobody/status").status == 404
    assert served(disclosure="private").send("DESCRIBE", "/agents/Front-Desk/status").status == 404


@pytest.mark.requirement("CORE-4.3-1")
@rows(
    "accept, content_type, starts",
    ("*/*", "application/vnd.agtp.identity+json", b"{"),
    ("application/json", "application/vnd.agtp.identity+json", b"{"),
    ("application/vnd.agtp.identity+yaml", "application/vnd.agtp.identity+yaml", b"agtp_version:"),
    ("application/yaml, application/json;q=0.5", "application/yaml", b"agtp_version:"),
    ("text/html,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8", b"<!doctype html>"),
)
def test_accept_chooses_the_representation_of_an_identity(accept: str, content_type: str, starts: bytes) -> None:
    bench = served(replace(CONCIERGE, name="<b>Desk"))
    reply = bench.dispatcher(Request("DESCRIBE", "/agents/b-Desk", "", {"accept": accept}, b"", Connection()))
    assert isinstance(reply, Response)
    assert (reply.status, reply.header("Content-Type")) == (200, content_type)
    assert reply.body.startswith(starts)
    assert b"<b>" not in reply.body or not content_type.startswith("text/html")


@pytest.mark.requirement("CORE-3-3", "CORE-4.3-6")
def test_an_agent_is_found_by_its_id() -> None:
    bench = served()
    assert bench.send("DESCRIBE", "/", {"agent_id": AGENT}).json["agent_id"] == AGENT
    assert bench.send("DESCRIBE", "/", {"agent_id": OTHER}).status == 404
    assert bench.send("DESCRIBE", "/", {"agent_id": "agtp://x"}).refusal == (400, "invalid-canonical-id")


@pytest.mark.requirement("CORE-7.3-8", "CORE-7.4-6")
@pytest.mark.parametrize(
    ("status", "expected"),
    [("suspended", 503), ("retired", 410), ("deprecated", 410), ("pending", 404), ("unreadable", 404)],
)
def test_an_inactive_agent_is_distinguished_from_an_unknown_one(status: str, expected: int) -> None:
    bench = served(replace(CONCIERGE, status=status, successor=OTHER))
    reply = bench.send("DESCRIBE", "/agents/Front-Desk")
    assert reply.status == expected
    if expected != 404:
        assert reply.error["agent_status"] == status
    if expected == 410:
        assert reply.error["successor_agent"] == OTHER


@pytest.mark.requirement("CORE-7.4-2")
def test_an_experimental_agent_is_only_shown_to_itself() -> None:
    experiment = replace(CONCIERGE, trust_tier=3)
    assert served(experiment).send("DESCRIBE", "/", {"agent_id": AGENT}).status == 404
    bench = served(experiment, proof=True)
    assert bench.send("DESCRIBE", "/", {"agent_id": AGENT}, agent_id=OTHER).status == 404
    assert bench.send("DESCRIBE", "/", {"agent_id": AGENT}, agent_id=AGENT).status == 200


@pytest.mark.requirement("API-8.5-2")
def test_agents_disclosed_to_authenticated_callers_make_two_manifests() -> None:
    bench = served(disclosure="authenticated", proof=True)
    everybody = bench.send("DISCOVER", "/")
    proven = bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=OTHER)
    assert (hosted(everybody), hosted(proven)) == ([], [AGENT])
    assert everybody.json["agent_disclosure"] == proven.json["agent_disclosure"] == "authenticated"
    assert everybody.header("ETag") != proven.header("ETag")
    assert everybody.header("Cache-Control") == "max-age=60"
    assert proven.header("Cache-Control") == "private, max-age=60"
    etag = everybody.header("ETag")
    assert etag is not None
    assert bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=OTHER, if_none_match=etag).status == 200


def test_disclosure_to_authenticated_callers_asks_others_for_proof() -> None:
    bench = served(disclosure="authenticated", proof=True)
    assert bench.send("DISCOVER", "/agents").told("type") == (262, "credentials-missing")
    assert bench.send("DISCOVER", "/agents", agent_id=OTHER).header("Cache-Control") == "private, max-age=60"
    assert bench.send("DESCRIBE", "/agents/Front-Desk").status == 404
    assert bench.send("DESCRIBE", "/agents/Front-Desk", agent_id=OTHER).status == 200
    find = {"criteria": "guests"}
    assert bench.send("DISCOVER", "/", find, agent_id=OTHER).json["result"]["candidates"][0]["kind"] == "agent"


def test_without_anonymous_discovery_or_proof_agents_are_hidden() -> None:
    bench = served(disclosure="authenticated")
    assert bench.send("DISCOVER", "/agents", agent_id=OTHER).status == 262
    assert hosted(bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=OTHER)) == []
    assert bench.send("DISCOVER", "/", {"criteria": "guests"}, agent_id=OTHER).json["result"]["candidates"] == []
    bench = served(policies=Policies(anonymous_discovery=False))
    for path in ("/agents", "/agents/Front-Desk"):
        assert bench.send("DISCOVER", path).error["type"] == "anonymous-discovery-disabled"


@pytest.mark.requirement("API-8.5-3")
def test_private_agents_are_only_shown_to_themselves() -> None:
    bench = served(disclosure="private", proof=True)
    assert bench.send("DISCOVER", "/agents", agent_id=OTHER).refusal == (403, "agents-not-disclosed")
    assert bench.send("DESCRIBE", "/agents/Front-Desk", agent_id=OTHER).status == 404
    assert hosted(bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=AGENT)) == []
    own = bench.send("DESCRIBE", "/", agent_id=AGENT)
    assert (own.status, own.json["agent_id"], own.header("Cache-Control")) == (200, AGENT, "private, max-age=60")


def test_the_operator_may_use_the_prefix_for_all_other_methods_and_override_these() -> None:
    properties = {"id": {"type": "string"}}
    bench = build(
        make_endpoint("FETCH", "/agents", echo),
        make_endpoint("DISCOVER", "/agents/{id}", echo, properties=properties, required=("id",)),
        agents=(CONCIERGE,),
    )
    assert bench.send("FETCH", "/agents").status == 200
    assert bench.send("DISCOVER", "/agents/x").json == {"id": "x"}
    assert bench.send("BOOK", "/agents").status == 405
    paths = [one["path"] for one in bench.send("DISCOVER", "/methods").json if one["method"] == "DISCOVER"]
    assert "/agents/{id}" in paths
    assert "/agents/{name}" not in paths


SERVICE = Service(
    identity=ServerIdentity(server_id="test.example", operator="Test", contact="t@test.example"), agents=(CONCIERGE,)
)


@pytest.mark.requirement("CORE-7.3-7", "CORE-3-19")
def test_documents_are_signed_where_there_is_a_key() -> None:
    key = generate_key()
    bench = Bench(assemble(SERVICE, signing_key=key))
    namespace = bench.send("DISCOVER", "/agents").json
    signature = namespace["signature"]
    assert (signature["algorithm"], signature["key_id"]) == ("EdDSA", key_id(key))
    assert verify_content(signature["value"], canonical_namespace(namespace), key).state == "valid"
    assert bench.send("DESCRIBE", "/agents/Front-Desk").json["manifest_signature"]
    assert served().send("DISCOVER", "/agents").json["signature"] is None


def test_half_a_key_signs_nothing() -> None:
    half = parse_jwk(public_jwk(generate_key()))
    assert not isinstance(half, Fault)
    with pytest.raises(ConfigError, match="private"):
        assemble(SERVICE, signing_key=half)


@pytest.mark.requirement("CORE-7.3-12")
def test_the_namespace_document_is_rebuilt_before_it_is_stale() -> None:
    seconds = [1_800_000_000.0]
    publication = Publication(
        *(SERVICE, {}, SERVICE.policies, Agents(SERVICE.agents)),
        catalog_version="1.1.0",
        updated="2026-01-01T00:00:00Z",
        clock=lambda: seconds[0],
    )
    first = publication.namespace
    seconds[0] += 59
    assert publication.namespace is first
    seconds[0] += 1
    second = publication.namespace
    assert second is not first
    seconds[0] -= 3600  # a clock that was set back must not keep a document from the future
    assert publication.namespace is not second


@pytest.mark.requirement("CORE-7.3-12", "CORE-7.4-7")
@pytest.mark.anyio
async def test_published_documents_follow_the_store() -> None:
    async with keeping(agents=(CONCIERGE,)) as bench:
        server = bench.bench.server
        before = await bench.send("DISCOVER", "/", agent=None)
        document = json.dumps({"agent_id": OTHER, "name": "night", "description": "Watches."})
        await bench.store.do(PutAgent(OTHER, "night", "active", document, "operator"))
        await server.agents.refresh()
        after = await bench.send("DISCOVER", "/", agent=None)
        assert (len(hosted(before)), hosted(after)) == (1, [AGENT, OTHER])
        assert after.header("ETag") != before.header("ETag")
        assert after.json["server"]["updated"] > before.json["server"]["updated"]
        assert (await bench.send("DISCOVER", "/agents")).json["total_active"] == 2
        assert (await bench.send("DISCOVER", "/", {"criteria": "watches"})).json["result"]["candidates"]
        stop = SetAgentStatus(AGENT, "REVOKE", frozenset({"active"}), "retired", "op", "x", "Front Desk", "active")
        await bench.store.do(stop)
        await server.agents.refresh()
        assert hosted(await bench.send("DISCOVER", "/", agent=None)) == [OTHER]
        gone = await bench.send("DESCRIBE", "/agents/Front-Desk", agent=None)
        assert (gone.status, gone.error["agent_status"]) == (410, "retired")
        assert gone.error["since"].startswith("20")


def test_agent_paths_are_not_listed_as_endpoints_of_the_service() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo), make_endpoint("FETCH", "/agents", echo))
    manifest, _ = parse_manifest(bench.send("DISCOVER", "/").response.body)
    assert manifest is not None
    assert [str(endpoint) for endpoint in manifest.own_endpoints] == ["BOOK /room", "FETCH /agents"]


ROOM = make_endpoint("BOOK", "/room", echo, scopes=("booking:room",), errors=("room_unavailable",))
COGNITIVE = ("QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN", "PROPOSE")
MECHANICS = ("EXECUTE", "DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "NOTIFY")
MANIFEST = "application/vnd.agtp.manifest+json"
PARTS = {"method", "path", "description", "semantic", "input_schema", "output_schema", "errors", "handler"}
SEMANTIC = {"intent", "actor", "outcome", "capability", "confidence", "impact", "is_idempotent"}


@pytest.mark.requirement("CORE-2.4-11")
@pytest.mark.requirement("API-8.10-1", "API-8.10-2", "API-8.11-1", "API-8.11-2", "API-13.1-5", "API-17.2-1")
def test_without_agent_id_the_manifest_has_its_type_etag_and_cache_control() -> None:
    reply = build(ROOM).send("DISCOVER", "/")
    assert reply.status == 200
    assert reply.header("Content-Type") == MANIFEST
    assert reply.header("ETag")
    assert reply.header("Cache-Control") == "max-age=60"
    assert reply.json["endpoints"]


def test_a_caller_with_the_current_manifest_gets_a_304_without_a_body() -> None:
    bench = build(ROOM)
    etag = bench.send("DISCOVER", "/").header("ETag")
    assert etag is not None
    for held in (etag, f'"other", {etag}', "*"):
        reply = bench.send("DISCOVER", "/", if_none_match=held)
        assert (reply.status, reply.response.body, reply.header("ETag")) == (304, b"", etag)
        assert reply.header("Content-Type") is None
    assert bench.send("DISCOVER", "/", if_none_match='"other"').status == 200


@pytest.mark.requirement("CORE-4.2-4", "API-8.10-1")
def test_with_agent_id_candidates_are_ranked_by_the_criteria() -> None:
    bench = build(ROOM, make_endpoint("QUERY", "/menus", echo))
    reply = bench.send("DISCOVER", "/", {"criteria": "book a room"}, agent_id=AGENT)
    assert reply.json["status"] == 200
    [first, *_] = reply.json["result"]["candidates"]
    assert (first["method"], first["path"]) == ("BOOK", "/room")
    assert 0 < first["relevance"] <= 1
    wanted = {"criteria": "query the menus of my room"}
    both = bench.send("DISCOVER", "/", wanted, agent_id=AGENT).json["result"]["candidates"]
    assert [entry["path"] for entry in both] == ["/menus", "/room"]
    assert both[0]["relevance"] > both[1]["relevance"] > 0
    assert bench.send("DISCOVER", "/", {"criteria": "zebra"}, agent_id=AGENT).json["result"] == {"candidates": []}


@pytest.mark.requirement("CORE-4.2-3")
def test_an_agent_without_criteria_gets_advice() -> None:
    assert build(ROOM).send("DISCOVER", "/", agent_id=AGENT).told("missing") == (422, ["criteria"])
    assert build(ROOM).send("DISCOVER", "/", {"target": "manifest"}, agent_id=AGENT).json["agtp_version"] == "1.0"


@pytest.mark.requirement(
    "API-5.8-1",
    "API-5.8-2",
    "API-5.8-3",
    "API-13.1-13",
    "API-3.1-1",
    "API-6.2-1",
    "API-7.1-2",
    "API-8.4-1",
    "API-5.8-5",
    "API-13.1-9",
    "API-13.1-1",
)
def test_inventory_and_manifest_are_complete_with_the_floor() -> None:
    bench = build(ROOM)
    inventory = bench.send("DISCOVER", "/methods").json
    described = {"description": "Lists all registered endpoints on this server."}
    assert {"method": "DISCOVER", "path": "/methods", **described} in inventory
    assert all(entry.keys() == {"method", "path", "description"} for entry in inventory)
    assert sorted((entry["method"], entry["path"]) for entry in inventory) == sorted(bench.routes.endpoints)
    assert ("BOOK", "/room") in bench.routes.endpoints
    assert bench.send("DISCOVER", "/", {"target": "methods"}).json == inventory
    manifest = bench.send("DISCOVER", "/").json
    assert sorted(method["name"] for method in manifest["embedded_methods"]) == sorted(COGNITIVE + MECHANICS)
    assert all(method["description"] for method in manifest["embedded_methods"])
    assert {e["method"] for e in manifest["endpoints"] if e["path"] == "/"} >= {*COGNITIVE, *MECHANICS}
    assert {bench.send(method, "/").status for method in COGNITIVE + MECHANICS}.isdisjoint({404, 405, 459, 460})
    for endpoint in manifest["endpoints"]:
        assert endpoint.keys() >= PARTS
        assert endpoint["semantic"].keys() >= SEMANTIC
        assert all(endpoint["semantic"][name] not in ("", None) for name in SEMANTIC)
        assert endpoint["input_schema"]["additionalProperties"] is False


@pytest.mark.requirement("CORE-10.1-13", "API-6.3-7", "API-8.9-1", "API-8.9-2", "API-13.1-6")
@pytest.mark.parametrize("disclosure", ["public", "authenticated", "private"])
@pytest.mark.parametrize(
    ("body", "headers"),
    [(None, {}), ({"target": "manifest"}, {"agent_id": AGENT}), (None, {"accept": MANIFEST, "agent_id": AGENT})],
)
def test_every_manifest_shows_only_the_type_of_a_handler(body: Any, headers: dict[str, str], disclosure: str) -> None:
    upstream = ExternalService(
        url="https://upstream.example/rooms",
        method="POST",
        headers={"X-Upstream-Key": "hidden-key"},
        input_transform={"room": "hidden_room"},
        error_map={"404": "upstream_error"},
    )
    outside = replace(make_endpoint("FETCH", "/outside", echo, errors=UPSTREAM_ERRORS), handler=upstream)
    bench = build(ROOM, outside, agent_disclosure=disclosure)
    manifest = bench.send("DISCOVER", "/", body, **headers).json
    handlers = {(each["method"], each["path"]): each["handler"] for each in manifest["endpoints"]}
    assert handlers.pop(("FETCH", "/outside")) == {"type": "external_service"}
    assert handlers
    assert all(handler == {"type": "registered_function"} for handler in handlers.values())
    for hidden in ("tests.function", "upstream.example", "hidden"):
        assert hidden not in str(manifest)


@pytest.mark.requirement("API-4.3-1", "API-4.3-2", "API-4.3-3", "API-4.8-1", "API-8.2-1", "API-8.2-3", "API-8.7-1")
@pytest.mark.requirement("API-8.3-2", "API-8.6-2", "API-9.5-1", "API-13.1-5")
def test_the_manifest_has_the_structure_of_the_draft() -> None:
    redirect = Redirect(from_method="RESERVE", from_path="/room", to_method="BOOK")
    policies = Policies(methods=MethodPolicy(disallow=("TRADE",), legacy=("GET",), redirects=(redirect,)))
    manifest = build(ROOM, policies=policies).send("DISCOVER", "/").json
    assert manifest["catalog_versions_supported"] == [manifest["catalog_version"]] == ["1.1.0"]
    assert (manifest["agtp_version"], manifest["agtp_api_version"]) == ("1.0", "1.0")
    assert manifest["server"] == {
        "server_id": "test.example",
        "domain": None,
        "operator": "Test",
        "contact": "ops@test.example",
        "supported_features": [],
        "issued": "2026-01-01T00:00:00Z",
        "updated": "2026-01-01T00:00:00Z",
    }
    assert manifest.keys() >= {
        *("document_version", "embedded_methods", "custom_methods", "endpoints", "agent_disclosure", "hosted_agents"),
        *("agent_disclosure_notice", "apis", "hosted_protocols", "policies", "manifest_signature"),
    }
    assert manifest["apis"] == []  # this server has no HTTP face
    assert manifest["policies"] == {
        "wildcards_accepted": False,
        "anonymous_discovery": True,
        "scope_required_for_invocation": True,
        "synthesis_enabled": False,
        "max_synthesis_depth": 10,
        "methods": {
            "allow": "*",
            "disallow": ["TRADE"],
            "legacy": ["GET"],
            "redirects": [{"from_method": "RESERVE", "from_path": "/room", "to_method": "BOOK"}],
            "custom": [],
        },
    }


@pytest.mark.requirement("API-8.3-5", "API-8.3-6", "API-8.3-7", "API-8.4-3", "API-8.5-4", "API-8.6-3")
def test_the_manifest_says_what_the_operator_declared() -> None:
    identity = ServerIdentity(
        server_id="agtp://acme",
        domain="rooms.acme.example",
        operator="Acme Rooms",
        contact="ops@acme.example",
        supported_features=("openapi-export",),
    )
    hosted = {"protocol": "mcp", "method": "EXECUTE", "path": "/mcp"}
    service = replace(
        build(ROOM).server.registrar.service,
        identity=identity,
        hosted_protocols=(hosted,),
        agent_disclosure_notice="Ask the desk.",
        policies=Policies(methods=MethodPolicy(custom=("GLAZE",))),
    )
    manifest = Bench(assemble(service, updated="2026-01-01T00:00:00Z")).send("DISCOVER", "/").json
    assert manifest["server"] | {"issued": "", "updated": ""} == {
        "server_id": "agtp://acme",
        "domain": "rooms.acme.example",
        "operator": "Acme Rooms",
        "contact": "ops@acme.example",
        "supported_features": ["openapi-export"],
        "issued": "",
        "updated": "",
    }
    assert [method["name"] for method in manifest["custom_methods"]] == ["GLAZE"]
    assert (manifest["hosted_protocols"], manifest["agent_disclosure_notice"]) == ([hosted], "Ask the desk.")


@pytest.mark.requirement("API-6.2-2", "API-6.4-5")
def test_optional_fields_of_an_endpoint_are_published_where_they_are_declared() -> None:
    old = Deprecation(deprecated_in="2.1.0", removed_in="3.0.0", successor_method="RESERVE", successor_path="/rooms")
    bench = build(replace(ROOM, namespace="reservations", deprecated=old), make_endpoint("FIND", "/room", echo))
    listed = {each["method"]: each for each in bench.send("DISCOVER", "/").json["endpoints"] if each["path"] == "/room"}
    assert (listed["BOOK"]["namespace"], listed["BOOK"]["required_scopes"]) == ("reservations", ["booking:room"])
    assert listed["BOOK"]["deprecated"] == {
        "deprecated_in": "2.1.0",
        "removed_in": "3.0.0",
        "successor": {"method": "RESERVE", "path": "/rooms"},
    }
    assert listed["FIND"].keys() - {"required_scopes"} == PARTS


@pytest.mark.requirement("API-8.2-2")
def test_the_document_version_follows_the_content() -> None:
    one = build(ROOM).send("DISCOVER", "/").json["document_version"]
    again = build(ROOM).send("DISCOVER", "/").json["document_version"]
    other = build(ROOM, make_endpoint("QUERY", "/menus", echo)).send("DISCOVER", "/").json["document_version"]
    assert one == again != other
    assert build(ROOM, document_version="v7").send("DISCOVER", "/").json["document_version"] == "v7"


@pytest.mark.requirement("API-8.5-1", "API-8.5-2", "API-8.5-3")
def test_hosted_agents_are_shown_according_to_disclosure() -> None:
    agent = Agent(agent_id=AGENT, name="concierge", description="Helps guests.")
    shown = [{"agent_id": AGENT, "name": "concierge", "description": "Helps guests."}]
    for disclosure, agents in (("public", shown), ("authenticated", []), ("private", [])):
        manifest = build(agents=(agent,), agent_disclosure=disclosure).send("DISCOVER", "/").json
        assert (manifest["agent_disclosure"], manifest["hosted_agents"]) == (disclosure, agents)
    # An Agent-ID header alone verifies nothing.
    bench = build(agents=(agent,), agent_disclosure="authenticated")
    assert bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=AGENT).json["hosted_agents"] == []


AGIS = "application/agis"


@pytest.mark.requirement("AGIS-10-5", "AGIS-10-7", "AGIS-11-1")
def test_the_root_returns_the_agis_document_on_request() -> None:
    bench = build(ROOM)
    reply = bench.send("DISCOVER", "/", accept=AGIS)
    assert (reply.status, reply.header("Content-Type"), reply.header("Cache-Control")) == (200, AGIS, "max-age=60")
    assert reply.json["agis"] == "1.0"
    assert [(entry["method"], entry["path"]) for entry in reply.json["endpoints"]] == [("BOOK", "/room")]
    assert bench.send("DISCOVER", "/", accept="application/agis+json, */*;q=0.1").json == reply.json
    assert bench.send("DISCOVER", "/", accept="*/*").json["agtp_version"] == "1.0"
    # An agent needs no criteria for it, nor for the manifest by its name.
    assert bench.send("DISCOVER", "/", accept=AGIS, agent_id=AGENT).json["agis"] == "1.0"
    assert bench.send("DISCOVER", "/", accept=MANIFEST, agent_id=AGENT).header("Content-Type") == MANIFEST
    etag = str(reply.header("ETag"))
    assert etag != bench.send("DISCOVER", "/").header("ETag")
    assert bench.send("DISCOVER", "/", accept=AGIS, if_none_match=etag).status == 304
    closed = build(ROOM, policies=Policies(anonymous_discovery=False))
    assert closed.send("DISCOVER", "/", accept=AGIS).status == 262
    assert closed.send("DISCOVER", "/", accept=AGIS, agent_id=AGENT).status == 200


@pytest.mark.process
@pytest.mark.requirement("AGIS-11-1", "AGIS-10.1-2")
def test_the_agis_document_at_the_root_passes_every_pass() -> None:
    with serving() as served, connect_sync(served.uri) as hotel:
        document = hotel.request("DISCOVER", "/", headers={"Accept": AGIS})
    checked = check_text(document.body.decode(), "hotel.agis", LintContext(catalog=load_bundled()))
    assert len(checked.subject.endpoints) == 6
    assert [finding for finding in checked.findings if finding.severity == "error"] == []


@pytest.mark.requirement("AGIS-8.3-2")
def test_a_public_data_manifest_makes_only_the_agis_document_public() -> None:
    bench = build(
        ROOM,
        policies=Policies(anonymous_discovery=False),
        data_manifest=DataManifest(available_data=(DataClass(name="room"),), pre_auth_discovery=True),
    )
    for body in (None, {"target": "manifest"}, {"criteria": "rooms"}):
        assert bench.send("DISCOVER", "/", body, accept=AGIS).json["data_manifest"]["pre_auth_discovery"] is True
    assert bench.send("DISCOVER", "/").status == 262
    assert bench.send("DISCOVER", "/methods", accept=AGIS).status == 262
    assert bench.send("DESCRIBE", "/", accept=AGIS).status == 262


@pytest.mark.parametrize(("before", "shown"), [(True, True), (None, True), (False, False)])
def test_data_manifest_for_callers_with_credentials_is_left_out_for_others(before: bool | None, shown: bool) -> None:
    bench = build(ROOM, data_manifest=DataManifest(available_data=(DataClass(name="room"),), pre_auth_discovery=before))
    anonymous = bench.send("DISCOVER", "/", accept=AGIS)
    agent = bench.send("DISCOVER", "/", accept=AGIS, agent_id=AGENT)
    assert ("data_manifest" in anonymous.json, "data_manifest" in agent.json) == (shown, True)
    assert ("data_manifest" in bench.send("DISCOVER", "/").json) is shown
    assert anonymous.header("Cache-Control") == "max-age=60"
    assert agent.header("Cache-Control") == ("max-age=60" if shown else "private, max-age=60")
    assert (anonymous.header("ETag") == agent.header("ETag")) is shown
