"""Both ends of a connection, talking to each other without a socket."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.errors import LocalProtocolError
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.translation import RequestReader
from bespeak.protocol.wire.connection import (
    ClientConnection,
    MessageReader,
    ResponseReader,
    encode_ok,
    encode_request,
    encode_response,
)
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, Limits, Malformed, Pause, ResponseMessage


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


CONNECTION = Connection()
SMALL = Limits(line=40, head=160, headers=5, body=30)

PIECES = st.sampled_from(
    [
        *(b"AGTP/1.0 QUERY /rooms?x=1\r\n", b"AGTP/1.0 QUERY\r\n", b"AGTP/1.0 ", b"AGTP/1.1 QUERY /\r\n"),
        *(b"AGTP/1.0 200 OK\r\n", b"Agent-ID: a\r\n", b"agent-id: b\n", b"Accept: x\n", b"Content-Length: 4\r\n"),
        *(b"Content-Length: 31\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n", b"\n", b"\r", b"body"),
        *(b" folded\r\n", b"\xff", b"\x00"),
        b"x" * 50,
    ]
)
STREAMS = st.lists(PIECES | st.binary(max_size=6), max_size=14).map(b"".join)


def events(reader: MessageReader[Any, object], pieces: list[bytes], *, eof: bool = False) -> list[object]:
    """Return every event of a stream that arrives in these pieces, up to the first fault."""
    seen: list[object] = []

    def take() -> bool:
        while True:
            event = reader.next_event()
            if isinstance(event, Pause):
                if event is CLOSED:
                    seen.append(event)
                return True
            seen.append(event)
            if isinstance(event, Malformed):
                return False

    for piece in pieces:
        reader.receive_data(piece)
        if not take():
            return seen
    if eof:
        reader.receive_eof()
        take()
    return seen


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


def single_bytes(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.requirement("CORE-1-13")
@pytest.mark.parametrize("reader", [lambda: RequestReader(SMALL, CONNECTION), lambda: ResponseReader(SMALL)])
@given(data=STREAMS, places=st.lists(st.integers(0, 400), max_size=6), eof=st.booleans())
def test_messages_are_the_same_however_the_bytes_are_cut(
    reader: Callable[[], MessageReader[Any, object]], data: bytes, places: list[int], eof: bool
) -> None:
    whole = events(reader(), [data] if data else [], eof=eof)
    assert events(reader(), cut(data, places), eof=eof) == whole
    assert events(reader(), single_bytes(data), eof=eof) == whole


@given(STREAMS)
def test_the_buffer_stays_within_the_limits(data: bytes) -> None:
    reader = RequestReader(SMALL, CONNECTION)
    for byte in single_bytes(data):
        reader.receive_data(byte)
        while isinstance(reader.next_event(), Request):
            pass
        assert reader.buffered <= SMALL.head + SMALL.body


@pytest.mark.requirement("CORE-1-13")
def test_pipelined_requests_are_returned_in_order() -> None:
    data = b"".join(b"AGTP/1.0 QUERY /%d\r\nContent-Length: 2\r\n\r\n%02d" % (n, n) for n in range(50))
    read = events(RequestReader(), [data])
    assert [(m.path, m.body) for m in read if isinstance(m, Request)] == [(f"/{n}", b"%02d" % n) for n in range(50)]


def test_a_response_has_status_reason_headers_and_body() -> None:
    data = b"AGTP/1.0 263 Proposal Approved\r\nServer-ID: s\r\nContent-Length: 2\r\n\r\n{}"
    headers = {"server-id": "s", "content-length": "2"}
    assert events(ResponseReader(), [data]) == [ResponseMessage(263, "Proposal Approved", headers, b"{}")]


def test_lines_may_end_with_a_bare_lf_and_an_unfinished_message_needs_data() -> None:
    [request] = events(RequestReader(), [b"AGTP/1.0 QUERY /a\nTask-ID: t\nContent-Length: 3\n\n\n\r\n"])
    assert isinstance(request, Request)
    assert (request.headers["task-id"], request.body) == ("t", b"\n\r\n")
    reader = RequestReader()
    reader.receive_data(b"AGTP/1.0 QUERY /\r\nContent-Length: 5\r\n\r\n1234")
    assert reader.next_event() is NEED_DATA
    reader.receive_data(b"5")
    assert isinstance(reader.next_event(), Request)
    assert reader.buffered == 0


@pytest.mark.parametrize(
    "part", [b"AGTP", b"AGTP/1.0 QUERY /\r\n", b"AGTP/1.0 QUERY /\r\nContent-Length: 5\r\n\r\n1234"]
)
def test_the_end_is_a_fault_only_in_the_middle_of_a_message(part: bytes) -> None:
    assert events(RequestReader(), [], eof=True) == [CLOSED]
    [fault] = events(RequestReader(), [part], eof=True)
    assert isinstance(fault, Malformed)
    assert fault.code == "incomplete-message"


def test_nothing_is_read_after_a_fault() -> None:
    reader = RequestReader()
    reader.receive_data(b"GET / HTTP/1.1\r\n\r\n")
    fault = reader.next_event()
    assert isinstance(fault, Malformed)
    reader.receive_data(b"AGTP/1.0 QUERY /\r\n\r\n")
    assert reader.next_event() is fault
    assert reader.buffered == 0


@rows(
    "data, code",
    (b"\x16\x03\x01\x02\x00", "invalid-request-line"),  # a TLS ClientHello on a plain port
    (b"AGTP/1.0 " + b"A" * 20_000, "request-line-too-long"),
    (b"AGTP/1.0 QUERY /\r\nX: " + b"a" * 70_000, "head-too-large"),
)
def test_a_message_that_cannot_become_valid_is_refused_before_its_end(data: bytes, code: str) -> None:
    [fault] = events(RequestReader(), [data])
    assert isinstance(fault, Malformed)
    assert (fault.status, fault.code) == (400, code)


def test_a_body_within_the_limit_arrives_whole_from_small_pieces() -> None:
    body = bytes(range(256)) * 1000
    data = b"AGTP/1.0 EXECUTE /\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    [request] = events(RequestReader(), [data[at : at + 1000] for at in range(0, len(data), 1000)])
    assert isinstance(request, Request)
    assert request.body == body


def test_a_parsed_head_is_remembered_but_cannot_be_changed() -> None:
    data = b"AGTP/1.0 QUERY /remembered\r\nSession-ID: t\r\n\r\n"
    first, second = (events(RequestReader(), [data])[0] for _ in range(2))
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert first.headers is second.headers
    with pytest.raises(TypeError):
        first.headers["session-id"] = "other"  # type: ignore[index]


def test_a_returned_message_is_released_while_the_next_one_is_incomplete() -> None:
    reader = RequestReader()
    data = b"AGTP/1.0 EXECUTE /\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
    for half in (data[:50_000], data[50_000:] + b"AGTP"):
        reader.receive_data(half)
    assert isinstance(reader.next_event(), Request)
    assert reader.next_event() is NEED_DATA
    assert (reader.buffered, reader.held) == (4, 4)
    reader.receive_data(b"/1.0 QUERY /a\r\n\r\n")
    event = reader.next_event()
    assert isinstance(event, Request)
    assert event.path == "/a"


def test_discarded_input_is_released_and_no_more_is_read() -> None:
    reader = RequestReader()
    reader.receive_data(b"AGTP/1.0 EXECUTE /\r\nContent-Length: 100000\r\n\r\n" + b"x" * 1000)
    assert reader.next_event() is NEED_DATA
    reader.discard()
    reader.receive_data(b"AGTP/1.0 QUERY /a\r\n\r\n")
    assert reader.held == 0
    assert isinstance(reader.next_event(), Malformed)


NAMES = st.from_regex(r"X-[A-Za-z0-9]{1,8}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8"), max_size=20)
TASK = ("Task-ID", "t")


@pytest.mark.requirement("CORE-2.1-4", "CORE-2.3-10", "CORE-2.4-11", "CORE-2.4-10")
@rows(
    "encoded, expected",
    (encode_request("QUERY", "/"), b"QUERY /\r\nContent-Length: 0\r\n\r\n"),
    (encode_request("QUERY", "/", [TASK], b"{}"), b"QUERY /\r\nTask-ID: t\r\nContent-Length: 2\r\n\r\n{}"),
    (encode_response(200, "OK"), b"200 OK\r\nContent-Length: 0\r\n\r\n"),
    (
        encode_response(200, "OK", b"Server-ID: s\r\n", [TASK], b"{}"),
        b"200 OK\r\nServer-ID: s\r\nTask-ID: t\r\nContent-Length: 2\r\n\r\n{}",
    ),
    (  # neither body nor Content-Type
        encode_response(204, "No Content", b"A: b\r\ncontent-type: a/b\r\n", [("Content-Type", "a/b"), TASK], b"{}"),
        b"204 No Content\r\nA: b\r\nTask-ID: t\r\nContent-Length: 0\r\n\r\n",
    ),
    (encode_response(304, "Not Modified", body=b"{}"), b"304 Not Modified\r\nContent-Length: 0\r\n\r\n"),
)
def test_a_message_is_written_with_its_headers_and_length(encoded: bytes, expected: bytes) -> None:
    assert encoded == b"AGTP/1.0 " + expected


@rows(
    "name, value",
    ("X", "a\r\nAgent-ID: b"),
    ("X", "a\nb"),
    ("X", "a\rb"),
    ("X", "\x00"),
    ("X", "\ud800"),
    ("X\r\nY", "a"),
    ("X Y", "a"),
    ("", "a"),
    ("X:", "a"),
    ("Content-Length", "3"),
    ("transfer-encoding", "chunked"),
)
def test_a_header_that_would_break_the_framing_is_refused(name: str, value: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_request("QUERY", "/", [(name, value)])
    with pytest.raises(LocalProtocolError):
        encode_response(200, "OK", headers=[(name, value)])


@rows(
    "method, target",
    ("", "/"),
    ("QUERY", ""),
    ("QU ERY", "/"),
    ("QUERY", "/a b"),
    ("QUERY", "/#a"),
    ("QUERY", "/\r\nX: y"),
    ("QÜRY", "/"),
    ("QUERY", "/räume"),
    ("QUERY", "/\ud800"),
)
def test_a_request_line_that_would_not_be_read_back_is_refused(method: str, target: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_request(method, target)


@pytest.mark.parametrize(("status", "reason"), [(99, "x"), (1000, "x"), (200, "a\r\nb")])
def test_a_status_line_that_would_not_be_read_back_is_refused(status: int, reason: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_response(status, reason)


@given(st.dictionaries(NAMES.map(str.lower), VALUES, max_size=4), st.binary(max_size=40))
def test_the_round_trip_preserves_the_value(headers: dict[str, str], body: bytes) -> None:
    try:
        sent = encode_request("QUERY", "/rooms?a=1", headers.items(), body)
        answered = encode_response(200, "OK", b"", list(headers.items()), body)
    except LocalProtocolError:
        assert any(character < " " or character == "\x7f" for value in headers.values() for character in value)
        return
    expected = {name: value.strip(" \t") for name, value in headers.items()} | {"content-length": str(len(body))}
    requests, responses = RequestReader(), ResponseReader()
    requests.receive_data(sent)
    responses.receive_data(answered)
    assert requests.next_event() == Request("QUERY", "/rooms", "a=1", expected, body, requests.connection)
    assert responses.next_event() == ResponseMessage(200, "OK", expected, body)


@given(st.lists(st.tuples(st.sampled_from(["Task-ID", "X-Y", "bad name", "Content-Length"]), st.text(max_size=5))))
def test_a_200_is_encoded_as_any_other_response(headers: list[tuple[str, str]]) -> None:
    def outcome(encode: Callable[[], bytes]) -> bytes | type[Exception]:
        try:
            return encode()
        except LocalProtocolError as error:
            return type(error)

    block, body = b"Server-ID: s\r\n", b"{}"
    assert outcome(lambda: encode_ok(block, headers, body)) == outcome(
        lambda: encode_response(200, "OK", block, headers, body)
    )
