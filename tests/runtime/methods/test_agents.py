"""/agents and disclosure: which callers may see the hosted agents and their documents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.service import AGENT, Bench, Reply, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.app.server.assembly import assemble
from bespeak.contract.agent import Agent, Genesis
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.manifest_json import parse_manifest
from bespeak.documents.projections.agent_documents import canonical_namespace
from bespeak.documents.projections.manifest_signature import verify_content
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.publication import Publication
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.credentials import Authenticated
from bespeak.state.identity.key_text import generate_key, key_id, parse_jwk, public_jwk
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
def test_an_agent_is_found_by_its_label(method: str) -> None:
    reply = served().send(method, "/agents/Front-Desk")
    assert (reply.status, reply.header("Content-Type")) == (200, "application/vnd.agtp.identity+json")
    assert (reply.json["agent_id"], reply.json["document_type"], reply.json["status"]) == (
        AGENT,
        "agtp-identity",
        "active",
    )
    assert reply.header("ETag")
    missing = served().send(method, "/agents/nobody")
    assert (missing.status, missing.error["code"]) == (404, "agent-not-found")


@pytest.mark.requirement("CORE-3-1")
@pytest.mark.parametrize("name", ["front-desk", "FRONT-DESK", "Front-Desk"])
def test_names_of_agents_do_not_depend_on_case(name: str) -> None:
    assert served().send("DESCRIBE", f"/agents/{name}").json["agent_id"] == AGENT


@pytest.mark.requirement("CORE-3-2")
@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/agents/front-desk.agent", "/agents/front-desk"),
        ("/agents/front-desk.nomo?format=json", "/agents/front-desk?format=json"),
        ("/agents/nobody.agtp", "/agents/nobody"),
        ("/agents/front-desk.agent/status", "/agents/front-desk/status"),
    ],
)
def test_a_name_with_a_file_extension_is_redirected_to_the_name(target: str, location: str) -> None:
    reply = served().send("DESCRIBE", target)
    assert (reply.status, reply.error["code"], reply.header("Location")) == (301, "moved-permanently", location)


@pytest.mark.requirement("CORE-3-3", "CORE-3-12")
@pytest.mark.parametrize("name", ["a%20b", "%C3%A4", ".agent", "a~b"])
def test_a_name_that_no_agent_can_have_is_400(name: str) -> None:
    reply = served().send("DESCRIBE", f"/agents/{name}")
    assert (reply.status, reply.error["code"]) == (400, "invalid-uri-form")


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
    missing = served().send("DESCRIBE", "/agents/front-desk?format=certificate")
    assert (missing.status, missing.error["code"]) == (404, "genesis-not-found")


@pytest.mark.requirement("CORE-3-5")
@pytest.mark.parametrize("state", ["active", "suspended", "retired"])
def test_the_status_of_an_agent_is_shown_in_every_state(state: str) -> None:
    bench = served(replace(CONCIERGE, status=state, updated_at="2026-05-01T00:00:00Z"))
    reply = bench.send("DESCRIBE", "/agents/Front-Desk/status")
    assert (reply.status, reply.json["lifecycle_state"], reply.json["last_updated"]) == (
        200,
        state,
        "2026-05-01T00:00:00Z",
    )
    assert bench.send("DESCRIBE", "/agents/nobody/status").status == 404
    assert served(disclosure="private").send("DESCRIBE", "/agents/Front-Desk/status").status == 404


@pytest.mark.requirement("CORE-4.3-1")
@pytest.mark.parametrize(
    ("accept", "content_type", "starts"),
    [
        ("*/*", "application/vnd.agtp.identity+json", b"{"),
        ("application/json", "application/vnd.agtp.identity+json", b"{"),
        ("application/vnd.agtp.identity+yaml", "application/vnd.agtp.identity+yaml", b"agtp_version:"),
        ("application/yaml, application/json;q=0.5", "application/yaml", b"agtp_version:"),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8", b"<!doctype html>"),
    ],
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
    malformed = bench.send("DESCRIBE", "/", {"agent_id": "agtp://x"})
    assert (malformed.status, malformed.error["code"]) == (400, "invalid-canonical-id")


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
    again = bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=OTHER, if_none_match=etag)
    assert again.status == 200


def test_disclosure_to_authenticated_callers_asks_others_for_proof() -> None:
    bench = served(disclosure="authenticated", proof=True)
    reply = bench.send("DISCOVER", "/agents")
    assert (reply.status, reply.error["type"]) == (262, "credentials-missing")
    assert bench.send("DISCOVER", "/agents", agent_id=OTHER).header("Cache-Control") == "private, max-age=60"
    assert bench.send("DESCRIBE", "/agents/Front-Desk").status == 404
    assert bench.send("DESCRIBE", "/agents/Front-Desk", agent_id=OTHER).status == 200
    find = {"criteria": "guests"}
    assert bench.send("DISCOVER", "/", find, agent_id=OTHER).json["result"]["candidates"][0]["kind"] == "agent"


def test_in_open_mode_no_caller_is_authenticated() -> None:
    bench = served(disclosure="authenticated")
    assert bench.send("DISCOVER", "/agents", agent_id=OTHER).status == 262
    assert hosted(bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=OTHER)) == []
    assert bench.send("DISCOVER", "/", {"criteria": "guests"}, agent_id=OTHER).json["result"]["candidates"] == []


@pytest.mark.requirement("API-8.5-3")
def test_private_agents_are_only_shown_to_themselves() -> None:
    bench = served(disclosure="private", proof=True)
    reply = bench.send("DISCOVER", "/agents", agent_id=OTHER)
    assert (reply.status, reply.error["code"]) == (403, "agents-not-disclosed")
    assert bench.send("DESCRIBE", "/agents/Front-Desk", agent_id=OTHER).status == 404
    assert hosted(bench.send("DISCOVER", "/", {"target": "manifest"}, agent_id=AGENT)) == []
    own = bench.send("DESCRIBE", "/", agent_id=AGENT)
    assert (own.status, own.json["agent_id"], own.header("Cache-Control")) == (200, AGENT, "private, max-age=60")


def test_without_anonymous_discovery_agents_are_hidden_from_anonymous_callers() -> None:
    bench = served(policies=Policies(anonymous_discovery=False))
    for path in ("/agents", "/agents/Front-Desk"):
        assert bench.send("DISCOVER", path).error["type"] == "anonymous-discovery-disabled"


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
