"""Bodies of the core protocol (core 5, 9): media types, envelopes, and fields that repeat a header."""

from __future__ import annotations

import secrets
from typing import Any

import httpx
import pytest
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.app.server.assembly import assemble
from bespeak.app.server.http_face import make_face
from bespeak.contract.agent import Agent
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.exchange.messages import Context
from bespeak.state.identity.key_text import generate_key

OTHER = "b" * 64
AGENTS = (
    Agent(agent_id=AGENT, name="desk", scopes=("booking:room",)),
    Agent(agent_id=OTHER, name="boss", scopes=("booking:*", "payments:*")),
)
AGTP = "application/vnd.agtp+json"
PARTY = {"party": {"type": "integer"}}


@pytest.mark.requirement("CORE-5.1-1", "CORE-5.1-2", "CORE-5.1-4")
def test_answers_have_the_types_of_the_draft_whatever_type_was_sent() -> None:
    bench = build(make_endpoint("BOOK", "/table", echo, properties=PARTY), agents=AGENTS)
    for given in (AGTP, "application/agtp+json", "application/json"):
        sent = {"agent_id": AGENT, "content_type": given}
        assert bench.send("BOOK", "/table", {"party": 1}, **sent).header("Content-Type") == AGTP
        assert bench.send("BOOK", "/table", {"dogs": 1}, **sent).header("Content-Type") == AGTP
        assert bench.send("DISCOVER", "/", {"criteria": "table"}, **sent).header("Content-Type") == AGTP
        assert bench.send("FROB", "/table", {}, **sent).header("Content-Type") == AGTP
    identity = bench.send("DESCRIBE", "/agents/desk", agent_id=AGENT)
    assert identity.header("Content-Type") == "application/vnd.agtp.identity+json"


@pytest.mark.requirement("CORE-5.1-3")
@pytest.mark.parametrize("given", [AGTP, "application/agtp+json", "application/json"])
def test_every_name_of_the_type_is_read_alike(given: str) -> None:
    bench = build(make_endpoint("BOOK", "/table", echo, properties=PARTY))
    assert bench.send("BOOK", "/table", b'{"party":2}', content_type=given).json == {"party": 2}


@pytest.mark.requirement("CORE-5.2-3", "CORE-5.2-4", "CORE-5.2-5")
def test_an_input_is_taken_bare_and_in_an_envelope_with_and_without_its_method() -> None:
    bench = build(make_endpoint("BOOK", "/table", echo, properties=PARTY))
    envelope = {"task_id": "t", "session_id": "s", "parameters": {"party": 2}, "context": {}}
    for body in ({"party": 2}, envelope, {"method": "BOOK", **envelope}, {"parameters": {"party": 2}}):
        assert bench.send("BOOK", "/table", body).json == {"party": 2}


@pytest.mark.requirement("CORE-5.3-1", "CORE-5.3-2")
def test_results_are_in_an_envelope_and_documents_are_bare() -> None:
    bench = build(make_endpoint("BOOK", "/table", echo), agents=AGENTS)
    found = bench.send("DISCOVER", "/", {"criteria": "table"}, agent_id=AGENT, task_id="t").json
    assert (found.keys(), found["status"], found["task_id"]) == ({"status", "task_id", "result"}, 200, "t")
    described = bench.send("DESCRIBE", "/", {"capability_domains": "version"}, task_id="t").json
    assert described == {"status": 200, "task_id": "t", "result": {"version": "1.0"}}
    for method, path, member in (
        ("DISCOVER", "/", "endpoints"),
        ("DISCOVER", "/agents", "agents"),
        ("DESCRIBE", "/agents/desk", "agent_id"),
    ):
        document = bench.send(method, path, task_id="t").json
        assert member in document
        assert not document.keys() & {"result", "task_id"}
    assert isinstance(bench.send("DISCOVER", "/methods").json, list)


@pytest.mark.requirement("CORE-5.4-1", "CORE-5.4-2")
def test_structural_refusals_name_the_verb_with_its_catalog_and_the_segment() -> None:
    bench = build(make_endpoint("BOOK", "/table", echo))
    unknown = bench.send("FROB", "/table").error
    assert (unknown["method"], unknown["catalog_version"]) == ("FROB", "1.1.0")
    assert bench.send("BOOK", "/tables/cancel/now").error["segment"] == "cancel"


@pytest.mark.requirement("CORE-1-12", "CORE-5.2-2", "CORE-9-1", "CORE-9-2")
@pytest.mark.anyio
async def test_fields_of_a_body_replace_no_header_and_decide_nothing() -> None:
    def tell(context: Context) -> dict[str, Any]:
        caller = context.principal
        return {
            "agent": caller.agent_id,
            "scopes": list(caller.scopes),
            "session": context.session_id,
            "task": context.task_id,
        }

    anything = {"additionalProperties": True, "type": "object"}
    carrier = make_endpoint("EXECUTE", "/job", tell, properties={"payload": anything}, scopes=("booking:room",))
    guarded = make_endpoint("EXECUTE", "/vault", tell, properties={"payload": anything}, scopes=("payments:buy",))
    session, another = secrets.token_hex(16), secrets.token_hex(16)
    claim = {
        "method": "CANCEL",
        "path": "/vault",
        "agent_id": OTHER,
        "Agent-ID": OTHER,
        "authority_scope": "payments:buy",
        "session_id": another,
        "task_id": "theirs",
    }
    expected = {"agent": AGENT, "scopes": ["booking:room"], "session": session, "task": "ours"}
    async with keeping(carrier, guarded, agents=AGENTS) as bench:
        headers = {"session_id": session, "task_id": "ours"}
        payload = await bench.send("EXECUTE", "/job", {"payload": claim}, **headers)
        envelope = {"method": "CANCEL", "task_id": "theirs", "session_id": another, "parameters": {"payload": claim}}
        enveloped = await bench.send("EXECUTE", "/job", envelope, **headers)
        for reply in (payload, enveloped):
            assert (reply.json, reply.header("Task-ID")) == (expected, "ours")
        assert (await bench.send("EXECUTE", "/vault", {"payload": claim}, **headers)).status == 455
        # Two sessions of one connection are two sessions.
        assert (await bench.send("SUSPEND", "/", {"session_id": session}, **headers)).status == 200
        assert (await bench.send("EXECUTE", "/job", {}, session_id=session)).status == 409
        assert (await bench.send("EXECUTE", "/job", {}, session_id=another)).json["session"] == another


@pytest.mark.requirement("CORE-9-7")
@pytest.mark.anyio
async def test_a_signed_document_is_the_same_over_http() -> None:
    identity = ServerIdentity(server_id="test.example", operator="Test", contact="t@test.example")
    bench = Bench(assemble(Service(identity=identity, agents=AGENTS), signing_key=generate_key()))
    face = make_face(bench.dispatcher, HttpSettings())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url="http://rooms.test") as http:
        over_http = await http.post("/agents/desk:describe")
    document = bench.send("DESCRIBE", "/agents/desk")
    assert document.json["manifest_signature"]
    assert document.json["trust_tier"]
    assert over_http.content == document.response.body
