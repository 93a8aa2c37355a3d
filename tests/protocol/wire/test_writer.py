"""Values to bytes: always framed, never with an injected line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.errors import LocalProtocolError
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.translation import RequestReader
from bespeak.protocol.wire.connection import ResponseReader, encode_ok, encode_request, encode_response
from bespeak.protocol.wire.messages import ResponseMessage

NAMES = st.from_regex(r"X-[A-Za-z0-9]{1,8}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8"), max_size=20)


@pytest.mark.requirement("CORE-2.1-4")
def test_a_request_has_three_tokens_and_its_length() -> None:
    assert encode_request("QUERY", "/", [("Task-ID", "t")], b"{}") == (
        b"AGTP/1.0 QUERY /\r\nTask-ID: t\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.requirement("CORE-2.3-10")
def test_an_empty_body_has_length_zero() -> None:
    assert encode_request("QUERY", "/") == b"AGTP/1.0 QUERY /\r\nContent-Length: 0\r\n\r\n"
    assert encode_response(200, "OK") == b"AGTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.requirement("CORE-2.4-11")
def test_a_response_has_block_headers_and_body() -> None:
    assert encode_response(200, "OK", b"Server-ID: s\r\n", [("Task-ID", "t")], b"{}") == (
        b"AGTP/1.0 200 OK\r\nServer-ID: s\r\nTask-ID: t\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.requirement("CORE-2.4-10")
def test_no_content_has_neither_body_nor_content_type() -> None:
    block = b"Server-ID: s\r\ncontent-type: a/b\r\n"
    assert encode_response(204, "No Content", block, [("Content-Type", "a/b"), ("Task-ID", "t")], b"{}") == (
        b"AGTP/1.0 204 No Content\r\nServer-ID: s\r\nTask-ID: t\r\nContent-Length: 0\r\n\r\n"
    )


def test_not_modified_has_no_body() -> None:
    assert encode_response(304, "Not Modified", b"", [("ETag", '"1"')], b"{}").endswith(b"Content-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [
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
    ],
)
def test_a_header_that_would_break_the_framing_is_refused(name: str, value: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_request("QUERY", "/", [(name, value)])
    with pytest.raises(LocalProtocolError):
        encode_response(200, "OK", headers=[(name, value)])


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("", "/"),
        ("QUERY", ""),
        ("QU ERY", "/"),
        ("QUERY", "/a b"),
        ("QUERY", "/#a"),
        ("QUERY", "/\r\nX: y"),
        ("QÜRY", "/"),
        ("QUERY", "/räume"),
        ("QUERY", "/\ud800"),
    ],
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
