"""Answers and refusals: what is logged, their status and code, and their response."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.queues import queue_of
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Exchange, Metrics, Subscriber, log_fault, make_metrics
from bespeak.runtime.handling import (
    RefusedError,
    check_size,
    effects,
    handler,
    invalid,
    passed,
    read_future,
    read_time,
    refuse_conflict,
)
from bespeak.runtime.responder import Responder
from bespeak.state.store.store import Conflict


@pytest.fixture(scope="module")
def bench() -> Bench:
    return build(
        make_endpoint("QUERY", "/rooms/{room}/keys", echo, properties={"room": {}}), make_endpoint("QUERY", "/x", echo)
    )


def call(bench: Bench, path: str, method: str = "QUERY") -> Call:
    request = Request(method, path, "token=1", {"authorization": "Bearer x"}, b"{}", Connection(peer="192.0.2.1:99"))
    return Call(request, bench.server)


@rows(
    "path, shown",
    ("/", "/"),
    ("/rooms/12/keys", "/rooms/*/keys"),
    ("/rooms/keys/12", "/rooms/keys/*"),
    ("/{room}", "/*"),
    ("/nowhere", "/*"),
    ("/" + "a" * 5000, "/*"),
    ("/x" * 5000, "/x" * 19),
)
def test_a_path_that_leads_nowhere_shows_the_words_of_contracts_alone(bench: Bench, path: str, shown: str) -> None:
    assert Exchange(call(bench, path), Response(404)).path == shown


def test_an_endpoint_is_named_by_its_template(bench: Bench) -> None:
    found = call(bench, "/rooms/12/keys")
    found.principal = Principal(agent_id=AGENT, principal_id="acme")
    route = bench.routes.router.find("QUERY", "/rooms/12/keys")
    assert route is not None
    routed = RoutedCall(found, *route)
    headers = (("Response-ID", "p"), ("Task-ID", "t" * 500), ("Audit-ID", "a"), ("Set-Secret", "s"))
    assert Exchange(routed, Response(200, headers=headers)).particulars == {
        "response_id": "p",
        "task_id": "t" * 128,
        "audit_id": "a",
        "agent_id": AGENT,
        "principal_id": "acme",
        "claimed_agent_id": None,
        "method": "QUERY",
        "path": "/rooms/{room}/keys",
        "status": 200,
        "peer": "192.0.2.1:99",
    }


@pytest.mark.parametrize(
    ("given", "words"), [(None, "anonymous"), ("hush", "anonymous"), (AGENT, f"a caller claiming to be {AGENT}")]
)
def test_caller_refused_before_identification_has_only_claimed_id(bench: Bench, given: str | None, words: str) -> None:
    found = call(bench, "/x")
    if given is not None:
        found.request.headers["agent-id"] = given  # type: ignore[index]
    told = Exchange(found, Response(401))
    assert (told.particulars["agent_id"], told.caller) == (None, words)
    found.principal = Principal(agent_id="b" * 64)
    told = Exchange(found, Response(200))
    assert (told.claimed_agent_id, told.caller) == (None, "b" * 64)


def test_an_invalid_request_is_logged_with_answer_and_peer(caplog: pytest.LogCaptureFixture) -> None:
    fault = Malformed(400, "invalid-header", "A header is not valid.")
    log_fault(fault, Connection(peer="192.0.2.1:99"), [("Response-ID", "p")], logging.WARNING)
    told = caplog.records[0].particulars  # type: ignore[attr-defined] # given as `extra`
    assert told == {"response_id": "p", "status": 400, "code": "invalid-header", "peer": "192.0.2.1:99"}


def answered(*subscribers: Subscriber) -> Dispatcher:
    server = build(make_endpoint("QUERY", "/rooms/{room}", echo, properties={"room": {}})).server
    return Dispatcher(server, subscribers=subscribers)


def test_every_subscriber_gets_every_exchange_once() -> None:
    first: list[Exchange] = []
    second: list[Exchange] = []
    dispatcher = answered(first.append, second.append)
    for method, path in (("QUERY", "/rooms/12"), ("BOOK", "/rooms/12"), ("FROB", "/"), ("DISCOVER", "/methods")):
        dispatcher(Request(method, path, "", {}, b"", Connection(face="http")))
    assert first == second
    told = [
        (one.method, one.path, one.response.status, one.response.code, one.call.request.connection.face)
        for one in first
    ]
    assert told == [
        ("QUERY", "/rooms/{room}", 200, None, "http"),
        ("BOOK", "/rooms/*", 405, "method-not-allowed", "http"),
        ("FROB", "/", 459, "method-violation", "http"),
        ("DISCOVER", "/methods", 200, None, "http"),
    ]
    assert all(one.seconds is not None and 0 < one.seconds < 60 for one in first)


FIND = make_endpoint("FIND", "/rooms/{room_id}", echo, properties={"room_id": {"type": "string"}})


def counted(*targets: str) -> str:
    bench = build(FIND)
    metrics = Metrics()
    dispatcher = Dispatcher(bench.dispatcher.server, subscribers=(metrics,))
    bench.dispatcher = dispatcher
    for target in targets:
        method, path = target.split(" ")
        bench.send(method, path, agent_id=AGENT)
    metrics.gauge("bespeak_agtp_connections", "Open connections.", lambda: 3.0)
    return metrics.write()[0].decode()


def test_answers_are_counted_by_endpoint_and_status() -> None:
    text = counted("FIND /rooms/1", "FIND /rooms/2")
    assert 'bespeak_requests_total{face="agtp",method="FIND",path="/rooms/{room_id}",status="200"} 2.0' in text
    assert 'bespeak_request_seconds_count{face="agtp",method="FIND",path="/rooms/{room_id}"} 2.0' in text
    assert "bespeak_agtp_connections 3.0" in text
    assert "process_open_fds" in text


def test_answers_to_bytes_and_invented_names_do_not_become_calls_or_labels() -> None:
    text = counted(*(f"FIND /secret-{number}" for number in range(50)), "XYZZY /rooms/1")
    assert "secret" not in text
    assert "XYZZY" not in text
    assert 'bespeak_requests_total{face="agtp",method="-",path="-",status="404"} 50.0' in text
    response = Responder().malformed(Malformed(400, "invalid-request-line", "No."), Connection(), SERVER.routes)
    assert (response.status, response.code) == (400, "invalid-request-line")
    assert response.header("Server-ID") == "test.example"


@pytest.mark.anyio
async def test_paths_that_agents_propose_do_not_become_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    async with negotiating() as bench:
        monkeypatch.setattr(bench.bench.dispatcher, "_subscribers", (metrics,))
        await bench.send("PROPOSE", "/", lodgings())
        assert (await bench.send("FIND", "/lodgings", {"town": "Rome"})).status == 200
        text = metrics.write()[0].decode()
        assert "lodgings" not in text
        assert 'method="FIND",path="(synthesis)",status="200"' in text


def test_log_says_how_to_get_the_extra(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with caplog.at_level(logging.WARNING):
        assert make_metrics() is None
    assert "pip install 'bespeak[metrics]'" in caplog.text


OTHER = "b" * 64
METHODS = ("SEND", "ALERT", "BROADCAST", "REPORT", "ROUTE", "REGISTER", "SUBMIT", "MONITOR", "PUBLISH", "PAUSE")
FULL = Refused(409, "full", "There is no room.")


def deliver(recipient: str, letter: dict[str, Any]) -> None:
    """Take every message."""


def serve() -> Any:
    delivery = DeliverySettings(channels={"sms": f"{__name__}.deliver"}, recipients=("acme.example",))
    document = ServerDocument(extension_tables={"delivery": delivery})
    return keeping(methods=METHODS, participants=(queue_of(),), document=document)


async def refused(bench: StatefulBench, method: str, body: dict[str, Any]) -> tuple[int, str]:
    reply = await bench.send(method, "/", body, authority_scope="messages:send")
    return reply.status, reply.error["code"]


UNLISTED = {
    "SEND": {"channel": "sms", "recipient": "+4930", "content": "x"},
    "NOTIFY": {"recipient": "sms:+4930", "content": "x"},
    "ALERT": {"recipient": "sms:+4930", "message": "x", "severity": "high"},
    "BROADCAST": {"audience": "sms:+4930", "content": "x"},
    "REPORT": {"report_type": "workflows", "scope": "all", "recipient": "sms:+4930"},
    "ROUTE": {"payload": {}, "criteria": {}, "candidates": [{"service": "agtp://evil.example", "method": "FETCH"}]},
    "REGISTER": {"entity_type": "subscription", "data": {"channel": "news", "callback": "sms:+4930"}},
    "SUBMIT": {"target": "invoices", "payload": {}, "callback": "sms:+4930"},
    "MONITOR": {"target": "server", "events": ["health_changed"], "callback": "sms:+4930"},
}


@pytest.mark.anyio
@pytest.mark.parametrize("method", UNLISTED)
async def test_an_address_that_the_operator_does_not_list_is_403(method: str) -> None:
    async with serve() as bench:
        assert await refused(bench, method, UNLISTED[method]) == (403, "address-not-listed")


TIMED = {
    "NOTIFY": {"recipient": OTHER, "content": "x", "expiry": ""},
    "ALERT": {"recipient": OTHER, "message": "x", "severity": "high", "acknowledge_by": ""},
    "BROADCAST": {"audience": OTHER, "content": "x", "expiry": ""},
    "PUBLISH": {"channel": "news", "content": "x", "schedule_at": ""},
    "PAUSE": {"workflow_id": "chain-x", "resume_at": ""},
    "SUSPEND": {"session_id": "s-1", "resume_by": ""},
}


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["soon", "2001-01-01T00:00:00Z"])
@pytest.mark.parametrize("method", TIMED)
async def test_an_unreadable_or_past_time_is_400(method: str, text: str) -> None:
    async with serve() as bench:
        body = {name: value or text for name, value in TIMED[method].items()}
        assert await refused(bench, method, body) == (400, "invalid-time")


OWNED = {
    "NOTIFY": {"recipient": "own", "content": "x"},
    "ALERT": {"recipient": "own", "message": "x", "severity": "high"},
    "BROADCAST": {"audience": "own", "content": "x"},
    "PUBLISH": {"channel": "own", "content": "x"},
}


@pytest.mark.anyio
@pytest.mark.parametrize("method", OWNED)
async def test_a_channel_that_somebody_else_owns_is_403(method: str) -> None:
    async with serve() as bench:
        await bench.send("REGISTER", "/", {"entity_type": "channel", "data": {"channel": "own"}}, agent=OTHER)
        assert await refused(bench, method, OWNED[method]) == (403, "channel-refused")
        await bench.send("REGISTER", "/", {"entity_type": "subscription", "data": {"channel": "own"}}, agent=AGENT)
        assert await refused(bench, method, OWNED[method]) == (403, "channel-refused")


def refusal_of(function: Any, *args: Any, **more: Any) -> Refused:
    with pytest.raises(RefusedError) as raised:
        function(*args, **more)
    return raised.value.refused


@pytest.mark.anyio
async def test_a_refusal_that_is_raised_is_the_answer() -> None:
    def refuse(call: Any) -> None:
        passed(FULL)

    async def refuse_later(call: Any) -> None:
        refuse(call)

    call: Any = None
    assert handler(refuse)(call) is FULL
    assert await handler(refuse_later)(call) is FULL
    assert passed("found") == "found"


def test_an_invalid_input_names_its_member() -> None:
    found = invalid("resume_by", "is over.").refused
    assert (found.status, found.code, found.message) == (422, "invalid-resume-by", "`resume_by` is over.")
    check_size("context", 1024, 1024)
    found = refusal_of(check_size, "context", 1025, 1024)
    assert (found.status, found.code, found.details["field"]) == (413, "context-too-large", "/context")


def test_a_time_is_read_or_refused_by_its_member_and_at_most_a_year_away() -> None:
    assert read_time({}, "deadline") is None
    assert read_time({"deadline": "1970-01-01T00:01:00Z"}, "deadline") == 60.0
    found = refusal_of(read_time, {"deadline": "soon"}, "deadline")
    assert (found.status, found.code, found.details) == (400, "invalid-time", {"field": "/deadline"})
    now = int(time.time())
    assert read_future({"expiry": write_instant(now + 60)}, "expiry") == now + 60
    assert "in the past" in refusal_of(read_future, {"expiry": write_instant(now - 60)}, "expiry").message
    assert "a year away" in refusal_of(read_future, {"expiry": write_instant(now + 400 * 86400)}, "expiry").message


def test_conflicts_are_a_table() -> None:
    table = {"full": FULL, "": lambda found: Refused(409, "other", f"It is {found['state']}.")}
    assert refuse_conflict(Conflict("full"), table) is refuse_conflict(Conflict("x"), FULL) is FULL
    assert refuse_conflict(Conflict("changed", {"state": "done"}), table).message == "It is done."
    made = effects([], lambda results: {"count": len(results)}, table)
    assert made.answer(Conflict("full")) is FULL
    assert made.answer([1, 2]).result == {"count": 2}  # type: ignore[union-attr]


SERVER = build(make_endpoint("BOOK", "/room", echo)).server


def routed_call(**headers: str) -> RoutedCall:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    arrived = Call(Request("BOOK", "/room", "", given, b"", Connection()), SERVER)
    return RoutedCall(arrived, SERVER.routes.direct["/room"]["BOOK"])


def test_responses_introduce_the_server_once_and_have_different_ids() -> None:
    responder, first = Responder(), routed_call()
    assert dict(responder.headers_of(first))["Supported-Methods"].startswith("ACTIVATE, BOOK")
    first.request.connection.answered = 1
    assert "Supported-Methods" not in dict(responder.headers_of(first))
    responder = Responder()
    assert len({dict(responder.headers_of(routed_call()))["Response-ID"] for _ in range(10)}) == 10


def test_a_refusal_has_its_code_and_the_task_it_belongs_to() -> None:
    response = Responder().refuse(routed_call(task_id="t"), Refused(404, "agent-not-found", "Nobody.", {"more": 1}))
    assert (response.status, response.code) == (404, "agent-not-found")
    assert msgspec.json.decode(response.body) == {
        "status": 404,
        "error": {"code": "agent-not-found", "message": "Nobody.", "more": 1},
        "task_id": "t",
    }


def test_envelopes_have_a_status_and_unchanged_documents_no_content_type() -> None:
    response = Responder().answer(routed_call(task_id="t"), Envelope({"a": 1}, 202))
    assert msgspec.json.decode(response.body) == {"status": 202, "task_id": "t", "result": {"a": 1}}
    assert Responder().answer(routed_call(), Answer(b"", 304)).header("Content-Type") is None
    assert Responder().answer(routed_call(), Answer(b"{}", content_type="text/x")).header("Content-Type") == "text/x"
