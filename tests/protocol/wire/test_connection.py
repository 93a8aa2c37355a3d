"""Both ends of a connection, talking to each other without a socket."""

from __future__ import annotations

from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.translation import RequestReader
from bespeak.protocol.wire.connection import ClientConnection, encode_response
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, Malformed, ResponseMessage


def test_a_conversation_of_two_requests() -> None:
    client, server = ClientConnection(), RequestReader()
    for number in range(2):
        server.receive_data(client.send("QUERY", f"/{number}", [("Task-ID", "t")], b"{}"))
        request = server.next_event()
        assert isinstance(request, Request)
        assert (request.path, request.headers["task-id"]) == (f"/{number}", "t")
        client.receive_data(encode_response(200, "OK", b"", [("Task-ID", "t")], request.body))
        response = client.next_event()
        assert isinstance(response, ResponseMessage)
        assert response.body == b"{}"
    assert client.next_event() is NEED_DATA
    client.receive_eof()
    assert client.next_event() is CLOSED


def test_an_answer_to_no_request_is_a_fault() -> None:
    client = ClientConnection()
    client.send("QUERY", "/")
    client.receive_data(encode_response(200, "OK") * 2)
    assert isinstance(client.next_event(), ResponseMessage)
    fault = client.next_event()
    assert isinstance(fault, Malformed)
    assert fault.code == "unexpected-response"


def test_the_client_counts_awaited_responses() -> None:
    client = ClientConnection()
    client.send("QUERY", "/a")
    client.send("QUERY", "/b")
    assert client.awaited == 2
    client.receive_data(encode_response(200, "OK") + encode_response(404, "Not Found"))
    assert [client.next_event().status for _ in range(2)] == [200, 404]  # type: ignore[union-attr]
    assert client.awaited == 0
