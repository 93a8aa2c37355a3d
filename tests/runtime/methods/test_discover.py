"""DISCOVER: manifest, inventory, candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.process import serving
from tests.service import AGENT, Bench, build, echo, make_endpoint

from bespeak.app.server.assembly import assemble
from bespeak.app.server.connect import connect_sync
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import Context
from bespeak.contract.agent import Agent
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Deprecation
from bespeak.contract.handler import UPSTREAM_ERRORS, ExternalService
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.service import DataClass, DataManifest, ServerIdentity

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


@pytest.mark.requirement("CORE-4.2-4")
@pytest.mark.requirement("API-8.10-1")
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
    reply = build(ROOM).send("DISCOVER", "/", agent_id=AGENT)
    assert (reply.status, reply.error["missing"]) == (422, ["criteria"])
    assert build(ROOM).send("DISCOVER", "/", {"target": "manifest"}, agent_id=AGENT).json["agtp_version"] == "1.0"


@pytest.mark.requirement("API-5.8-1", "API-5.8-2", "API-5.8-3", "API-13.1-13")
def test_the_inventory_lists_every_endpoint_and_itself() -> None:
    bench = build(ROOM)
    inventory = bench.send("DISCOVER", "/methods").json
    assert {
        "method": "DISCOVER",
        "path": "/methods",
        "description": "Lists all registered endpoints on this server.",
    } in (inventory)
    assert all(entry.keys() == {"method", "path", "description"} for entry in inventory)
    assert sorted((entry["method"], entry["path"]) for entry in inventory) == sorted(bench.routes.endpoints)
    assert ("BOOK", "/room") in bench.routes.endpoints
    assert bench.send("DISCOVER", "/", {"target": "methods"}).json == inventory


@pytest.mark.requirement("API-3.1-1", "API-6.2-1", "API-7.1-2", "API-8.4-1")
@pytest.mark.requirement("API-5.8-5", "API-13.1-9", "API-13.1-1")
def test_the_floor_is_in_the_manifest_and_every_endpoint_is_complete() -> None:
    bench = build(ROOM)
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


@pytest.mark.requirement("CORE-10.1-13")
@pytest.mark.requirement("API-6.3-7", "API-8.9-1", "API-8.9-2", "API-13.1-6")
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


@pytest.mark.process
@pytest.mark.requirement("AGIS-11-1", "AGIS-10.1-2")
def test_the_agis_document_at_the_root_passes_every_pass() -> None:
    with serving() as served, connect_sync(served.uri) as hotel:
        document = hotel.request("DISCOVER", "/", headers={"Accept": AGIS})
    checked = check_text(document.body.decode(), "hotel.agis", Context(catalog=load_bundled()))
    assert checked.subject is not None
    assert len(checked.subject.endpoints) == 6
    assert [finding for finding in checked.findings if finding.severity == "error"] == []


def test_an_agent_gets_the_agis_document_too_and_needs_no_criteria() -> None:
    assert build(ROOM).send("DISCOVER", "/", accept=AGIS, agent_id=AGENT).json["agis"] == "1.0"


def test_a_caller_with_the_current_agis_document_gets_a_304() -> None:
    bench = build(ROOM)
    etag = bench.send("DISCOVER", "/", accept=AGIS).header("ETag")
    assert etag is not None
    assert etag != bench.send("DISCOVER", "/").header("ETag")
    assert bench.send("DISCOVER", "/", accept=AGIS, if_none_match=etag).status == 304


def test_without_anonymous_discovery_the_agis_document_needs_an_agent_id() -> None:
    bench = build(ROOM, policies=Policies(anonymous_discovery=False))
    assert bench.send("DISCOVER", "/", accept=AGIS).status == 262
    assert bench.send("DISCOVER", "/", accept=AGIS, agent_id=AGENT).status == 200


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
def test_a_data_manifest_that_is_for_callers_with_credentials_is_left_out_for_others(
    before: bool | None, shown: bool
) -> None:
    bench = build(ROOM, data_manifest=DataManifest(available_data=(DataClass(name="room"),), pre_auth_discovery=before))
    anonymous = bench.send("DISCOVER", "/", accept=AGIS)
    agent = bench.send("DISCOVER", "/", accept=AGIS, agent_id=AGENT)
    assert ("data_manifest" in anonymous.json, "data_manifest" in agent.json) == (shown, True)
    assert ("data_manifest" in bench.send("DISCOVER", "/").json) is shown
    assert anonymous.header("Cache-Control") == "max-age=60"
    assert agent.header("Cache-Control") == ("max-age=60" if shown else "private, max-age=60")
    assert (anonymous.header("ETag") == agent.header("ETag")) is shown


def test_every_caller_that_accepts_the_manifest_by_name_gets_it() -> None:
    reply = build().send("DISCOVER", "/", accept=MANIFEST, agent_id=AGENT)
    assert (reply.status, reply.header("Content-Type")) == (200, MANIFEST)
