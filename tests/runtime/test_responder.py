"""Answers and refusals as responses."""

from __future__ import annotations

import msgspec
from tests.service import build, echo, make_endpoint

from bespeak.protocol.exchange.messages import Connection, Malformed, Request
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.responder import Responder

SERVER = build(make_endpoint("BOOK", "/room", echo)).server


def call(**headers: str) -> RoutedCall:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    arrived = Call(Request("BOOK", "/room", "", given, b"", Connection()), SERVER)
    return RoutedCall(arrived, SERVER.routes.direct["/room"]["BOOK"])


def test_the_first_response_of_a_connection_introduces_the_server() -> None:
    responder, first = Responder(), call()
    assert dict(responder.headers_of(first))["Supported-Methods"].startswith("ACTIVATE, BOOK")
    first.request.connection.answered = 1
    assert "Supported-Methods" not in dict(responder.headers_of(first))


def test_response_ids_differ() -> None:
    responder = Responder()
    assert len({dict(responder.headers_of(call()))["Response-ID"] for _ in range(10)}) == 10


def test_a_refusal_has_its_code_and_the_task_it_belongs_to() -> None:
    response = Responder().refuse(call(task_id="t"), Refused(404, "agent-not-found", "Nobody.", {"more": 1}))
    assert (response.status, response.code) == (404, "agent-not-found")
    assert msgspec.json.decode(response.body) == {
        "status": 404,
        "error": {"code": "agent-not-found", "message": "Nobody.", "more": 1},
        "task_id": "t",
    }


def test_an_envelope_has_status_task_and_result() -> None:
    response = Responder().answer(call(task_id="t"), Envelope({"a": 1}, 202))
    assert msgspec.json.decode(response.body) == {"status": 202, "task_id": "t", "result": {"a": 1}}


def test_a_document_that_is_unchanged_has_no_content_type() -> None:
    assert Responder().answer(call(), Answer(b"", 304)).header("Content-Type") is None
    assert Responder().answer(call(), Answer(b"{}", content_type="text/x")).header("Content-Type") == "text/x"


def test_bytes_that_are_not_a_request_are_answered_without_a_call() -> None:
    response = Responder().malformed(Malformed(400, "invalid-request-line", "No."), Connection(), SERVER.routes)
    assert (response.status, response.code) == (400, "invalid-request-line")
    assert response.header("Server-ID") == "test.example"
