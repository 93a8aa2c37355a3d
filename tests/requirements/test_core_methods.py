"""Floor methods (core 4) and bodies (core 5, 9): parameters, publication, media types and envelopes."""

from __future__ import annotations

import logging
import secrets
from typing import Any

import httpx
import pytest
from tests.cases import rows
from tests.runtime.methods.test_delegate import FIRST, SECOND, THIRD, granted, served, wish
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.app.server.assembly import assemble
from bespeak.app.server.http_face import make_face
from bespeak.contract.agent import Agent
from bespeak.contract.service import ServerIdentity, Service
from bespeak.contract.standard.floor import FLOOR
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.exchange.messages import Context
from bespeak.state.identity.jws import generate_key
from bespeak.state.store.commands.cases import ReadCase

pytestmark = pytest.mark.anyio

DESK = "d" * 64
GIVEN: dict[str, dict[str, Any]] = {
    "DELEGATE": {
        "target_agent_id": DESK,
        "task": "book",
        "authority_scope": "booking:room",
        "delegation_token": "issue",
    },
    "ESCALATE": {"task_id": "t-1", "reason": "scope_limit", "context": {"amount": 12}},
    "CONFIRM": {"target_id": "esc-1", "status": "accepted"},
    "SUSPEND": {"session_id": "s-1"},
}


@pytest.mark.requirement("CORE-4.8-1", "CORE-4.9-1", "CORE-4.10-1", "CORE-4.11-1")
@pytest.mark.parametrize(("method", "name"), [(method, name) for method, given in GIVEN.items() for name in given])
async def test_a_call_without_a_parameter_it_must_have_is_422(method: str, name: str) -> None:
    async with keeping() as bench:
        less = {key: value for key, value in GIVEN[method].items() if key != name}
        reply = await bench.send(method, "/", less)
        assert (reply.status, name in str(reply.error)) == (422, True)
        assert (await bench.send(method, "/", GIVEN[method])).status != 422


@pytest.mark.requirement("CORE-4.9-2", "CORE-4.10-2")
@rows(
    "method, member, value",
    ("ESCALATE", "reason", "tired"),
    ("ESCALATE", "priority", "whenever"),
    ("CONFIRM", "status", "maybe"),
    ("SUSPEND", "reason", "tired"),
)
async def test_a_word_that_the_draft_does_not_have_is_422(method: str, member: str, value: str) -> None:
    async with keeping() as bench:
        reply = await bench.send(method, "/", {**GIVEN[method], member: value})
        assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")


async def test_an_escalated_task_waits_for_a_confirmation() -> None:
    async with keeping() as bench:
        asked = (await bench.send("ESCALATE", "/", {**GIVEN["ESCALATE"], "recipient": DESK})).json["result"]
        assert (asked["status"], asked["task_paused"]) == ("pending", True)
        answer = {"target_id": asked["escalation_id"], "status": "deferred", "reason": "later"}
        assert (await bench.send("CONFIRM", "/", answer, agent=DESK)).status == 200
        again = (await bench.send("ESCALATE", "/", {**GIVEN["ESCALATE"], "recipient": DESK})).json["result"]
        assert (again["escalation_id"], again["status"]) == (asked["escalation_id"], "deferred")
        resolved = await bench.send("CONFIRM", "/", {**answer, "status": "accepted"}, agent=DESK)
        assert resolved.json["result"]["attestation_id"]
        assert (await bench.store.read(ReadCase(asked["escalation_id"]))).state == "accepted"


@pytest.mark.requirement("CORE-4.11-7")
async def test_a_suspended_session_does_not_suspend_the_agent() -> None:
    session, other = secrets.token_hex(16), secrets.token_hex(16)
    async with keeping(make_endpoint("FETCH", "/menu", echo)) as bench:
        assert (await bench.send("FETCH", "/menu", session_id=session)).status == 200
        assert (await bench.send("SUSPEND", "/", {"session_id": session})).status == 200
        assert (await bench.send("FETCH", "/menu", session_id=session)).status == 409
        assert (await bench.send("FETCH", "/menu", session_id=other)).status == 200
        assert (await bench.send("FETCH", "/menu", agent=AGENT)).status == 200


@pytest.mark.requirement("CORE-7.6-3")
async def test_each_hop_of_a_chain_in_use_is_logged_and_no_token_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with served(generate_key()) as bench:
            first = await granted(bench, wish(scope="booking:*", depth=1))
            second = await granted(bench, wish(THIRD), SECOND, delegation_chain=first["delegation_chain"])
            for _ in range(3):
                reply = await bench.send("BOOK", "/room", agent=THIRD, delegation_chain=second["delegation_chain"])
                assert reply.status == 200
    lines = [record.getMessage() for record in caplog.records]
    for delegator, delegate, scope in ((FIRST, SECOND, "booking:*"), (SECOND, THIRD, "booking:room")):
        assert len([line for line in lines if delegator in line and delegate in line and scope in line]) == 1
    for grant in (first, second):
        assert grant["delegation_token"] not in caplog.text


# The parameters that core 4 says MUST be there, without those of DISCOVER, which has requests without any.
NEEDED: dict[str, dict[str, Any]] = {
    "QUERY": {"intent": "breakfast"},
    "SUMMARIZE": {"source": "text"},
    "PLAN": {"goal": "rest"},
    "EXECUTE": {"action": "run"},
    "NOTIFY": {"recipient": AGENT, "content": {"a": 1}},
}
OTHERS: dict[str, dict[str, Any]] = {
    "DISCOVER": {},
    "DESCRIBE": {},
    "PROPOSE": {},
    "DELEGATE": {"target_agent_id": AGENT, "task": "t", "authority_scope": "a:b", "delegation_token": "issue"},
    "CONFIRM": {"target_id": "esc-1", "status": "accepted"},
    "SUSPEND": {"session_id": "s-1"},
    "ESCALATE": {"task_id": "t", "reason": "scope_limit"},
}
IDEMPOTENT = {"QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN", "ESCALATE", "CONFIRM"}
BENCH = build()


def refused(method: str, body: dict[str, Any]) -> list[str]:
    """Return the places that a call is refused for; none if its input is valid."""
    reply = BENCH.send(method, "/", body)
    return [str(found) for found in reply.error.get("violations", ())] if reply.status == 422 else []


@pytest.mark.requirement("CORE-4.1-1", "CORE-4.4-1", "CORE-4.5-1", "CORE-4.7-1", "CORE-4.12-1")
@pytest.mark.parametrize(("method", "name"), [(method, name) for method, given in NEEDED.items() for name in given])
def test_a_call_without_a_parameter_it_must_have_is_refused(method: str, name: str) -> None:
    [found] = refused(method, {key: value for key, value in NEEDED[method].items() if key != name})
    assert name in found


@pytest.mark.requirement("CORE-4.1-6", "CORE-4.4-1", "CORE-4.12-1")
@rows(
    "method, name, words",
    ("QUERY", "format", ("structured", "natural", "raw")),
    ("SUMMARIZE", "length", ("brief", "standard", "detailed")),
    ("SUMMARIZE", "format", ("bullets", "prose", "structured")),
    ("NOTIFY", "urgency", ("critical", "informational", "background")),
    ("NOTIFY", "delivery_guarantee", ("at_most_once", "at_least_once", "exactly_once")),
)
def test_a_parameter_takes_the_words_of_the_draft_and_no_others(method: str, name: str, words: tuple[str, ...]) -> None:
    # Without `intent` a QUERY stops at its input, so that nothing is searched.
    given = {} if method == "QUERY" else NEEDED[method]
    for word in words:
        assert not any(name in found for found in refused(method, {**given, name: word}))
    assert any(name in found for found in refused(method, {**given, name: "otherwise"}))


@pytest.mark.requirement("CORE-4-1")
@pytest.mark.parametrize("method", [method.name for method in FLOOR])
def test_a_context_is_taken_by_every_method_and_is_an_object(method: str) -> None:
    given = {**NEEDED, **OTHERS}[method]
    if method != "QUERY":  # which would search
        assert refused(method, {**given, "context": {"why": "a test"}}) == []
    assert any("context" in found for found in refused(method, {**given, "context": "text"}))


@pytest.mark.requirement("CORE-4-2", "CORE-4-3")
def test_methods_are_published_as_the_table_has_them() -> None:
    floor = {method.name for method in FLOOR}
    published = {
        entry["method"]: entry["semantic"]
        for entry in BENCH.send("DISCOVER", "/").json["endpoints"]
        if entry["path"] == "/" and entry["method"] in floor
    }
    assert published.keys() == floor
    assert {method for method, semantic in published.items() if semantic["is_idempotent"]} == IDEMPOTENT
    informational = {method for method, semantic in published.items() if semantic["impact"] == "informational"}
    assert informational == {"QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN"}


@pytest.mark.requirement("CORE-4.13-4")
@pytest.mark.parametrize("method", ["X-BOOK", "X-TEST", "X-"])
def test_an_experimental_name_is_an_unknown_verb(method: str) -> None:
    reply = build(make_endpoint("BOOK", "/room", echo)).send(method, "/room")
    assert (reply.status, reply.error["code"]) == (459, "method-violation")


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
