"""The log line of an answer, and its audit record."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from typing import Any

import pytest
from msgspec import structs
from tests.service import AGENT, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.exchange import ACCESS_LOGGER, REPLAYED, Auditor, Exchange, access_log
from bespeak.state.audit.record import Payload
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.store import Sealed

pytestmark = pytest.mark.anyio


def request(method: str, path: str) -> Request:
    return Request(method, path, "", {"request-id": "r-1"}, b"", Connection(peer="192.0.2.1:99"))


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, Any]]:
    return [
        (record.getMessage(), vars(record)["particulars"]) for record in caplog.records if record.name == ACCESS_LOGGER
    ]


async def later(context: Any) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {}


def untimed(message: str) -> str:
    """Return a line without its duration, which must be a number of milliseconds."""
    line, _, duration = message.rpartition(" in ")
    assert re.fullmatch(r"[0-9]+\.[0-9] ms", duration)
    return line


@pytest.mark.parametrize("handler", [echo, later])
async def test_an_answer_is_logged_once_it_is_complete(caplog: pytest.LogCaptureFixture, handler: Any) -> None:
    with caplog.at_level(logging.INFO):
        bench = build(make_endpoint("QUERY", "/rooms/{room}", handler, properties={"room": {}}))
        answer = bench.dispatcher(request("QUERY", "/rooms/12"))
        if inspect.iscoroutine(answer):
            assert told(caplog) == []
            answer = await answer
    assert isinstance(answer, Response)
    [(message, members)] = told(caplog)
    assert untimed(message) == "200 QUERY /rooms/{room} by anonymous"
    assert (members["code"], members["ms"] > 0) == (None, True)
    assert (members["request_id"], members["response_id"]) == ("r-1", answer.header("response-id"))


async def test_a_cancelled_call_is_logged_as_one(caplog: pytest.LogCaptureFixture) -> None:
    started = asyncio.Event()

    async def wait() -> dict[str, Any]:
        started.set()
        await asyncio.Event().wait()
        return {}

    with caplog.at_level(logging.DEBUG):
        bench = build(make_endpoint("QUERY", "/rooms", wait))
        answer = bench.dispatcher(request("QUERY", "/rooms"))
        assert inspect.iscoroutine(answer)
        running = asyncio.create_task(answer)
        await started.wait()
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [untimed(message) for message, _ in told(caplog)] == ["408 call-cancelled: QUERY /rooms by anonymous"]
    assert "QUERY /rooms was cancelled before it was answered" in caplog.text


async def test_the_record_of_an_answer_is_named(caplog: pytest.LogCaptureFixture) -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    caplog.set_level(logging.DEBUG)
    async with keeping(make_endpoint("QUERY", "/rooms", echo), document=document) as bench:
        answer = bench.bench.dispatcher(request("QUERY", "/rooms"))
        assert inspect.iscoroutine(answer)
        response = await answer
    [(_, members)] = told(caplog)
    assert members["audit_id"] == response.header("audit-id") is not None


def test_a_disabled_log_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert access_log() == ()


def test_a_refusal_is_one_line_with_its_code_and_only_a_terminal_is_given_an_unknown_path(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        build(make_endpoint("QUERY", "/rooms", echo)).send("QUERY", "/rooms/anna-smith")
    [record] = caplog.records
    assert untimed(record.getMessage()) == "404 endpoint-not-found: QUERY /rooms/* by anonymous"
    assert "anna" not in str(vars(record))
    assert vars(record)["asked"].text == "/rooms/anna-smith"


def test_an_invalid_request_is_logged_without_its_bytes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        response = build().dispatcher.malformed(Malformed(400, "invalid-request-line", "hush"), Connection())
    assert response.status == 400
    [(message, _)] = told(caplog)
    assert message == "400 invalid-request-line: refused before it was read"
    assert "hush" not in caplog.text


BOOK = make_endpoint("BOOK", "/room/{number}", echo, properties={"number": {"type": "string"}, "guest": {}})
SEALED = Sealed("e" * 64, "s", 1, AGENT, "a.b.c")


def call(method: str = "BOOK", path: str = "/room/12", *, agent: str | None = AGENT, **given: Any) -> Call:
    server = build(BOOK).server
    made = Call(Request(method, path, "", {}, b"", Connection()), server)
    made.principal = Principal(agent)
    found = server.routes.router.find(method, path)
    if found is None:
        return made
    routed = RoutedCall(made, *found)
    routed.input = given
    return routed


def auditor(**settings: Any) -> Auditor:
    return Auditor("rooms", **({"attributes": True, "clock": lambda: 1_777_000_000.5} | settings))


def test_acting_endpoints_are_recorded_with_the_named_input_and_signed_if_so() -> None:
    assert auditor().audits(call(agent=None))
    assert auditor().audits(call("SUSPEND", "/"))
    assert not auditor().audits(call("DISCOVER", "/"))
    assert auditor(discovery=True).audits(call("DISCOVER", "/"))
    fields = {("BOOK", "/room/{number}"): ("guest", "number")}
    entry = auditor(fields=fields).entry(Exchange(call(guest="Ann", other="x"), Response(200, b"{}")))
    assert isinstance(entry.payload, Payload)
    assert entry.payload.extra == {"input": {"guest": "Ann"}}
    assert auditor().headers(SEALED) == (("Audit-ID", "e" * 64), ("Attribution-Record", "a.b.c"))
    assert auditor(attributes=False).headers(SEALED) == (("Audit-ID", "e" * 64),)


@pytest.mark.parametrize(("agent", "recorded"), [(AGENT, True), (None, False)])
def test_callers_that_reach_no_endpoint_do_not_fill_the_trail(agent: str | None, recorded: bool) -> None:
    assert auditor().audits(call("BOOK", "/nowhere", agent=agent)) is recorded


def test_a_record_has_the_template_of_the_path_and_no_input() -> None:
    entry = auditor().entry(Exchange(call(number="12", guest="Ann"), Response(200, b"{}", headers=(REPLAYED,))))
    assert entry.agent_id == AGENT
    assert isinstance(entry.payload, Payload)
    assert (entry.payload.path, entry.payload.replayed) == ("/room/{number}", True)
    assert entry.payload.issued_at == "2026-04-24T03:06:40.500Z"
    assert entry.payload.extra is None


@pytest.mark.parametrize(("face", "recorded"), [("agtp", None), ("http", "http"), ("mcp", "mcp")])
def test_a_record_names_the_face_unless_it_is_agtp(face: str, recorded: str | None) -> None:
    made = call()
    connection = Connection(peer="x:1", address="x").seen_as(face)
    made.request = structs.replace(made.request, connection=connection)
    payload = auditor().entry(Exchange(made, Response(200, b"{}"))).payload
    assert isinstance(payload, Payload)
    assert payload.face == recorded
    assert (connection.peer, connection.address) == ("x:1", "x")
