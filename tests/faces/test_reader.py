"""What a connection expects of the reader of every face."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faces.lines import Lines

from bespeak.faces.connection import Reader
from bespeak.faces.http.reader import RequestReader as HttpReader
from bespeak.protocol.translation import RequestReader as AgtpReader
from bespeak.protocol.wire.messages import NEED_DATA, Limits, Pause

SPACE = b" " * 20_000
FACES = [
    (Lines, b"hello" + SPACE + b"\n"),
    (AgtpReader, b"AGTP/1.0 QUERY /a\r\nContent-Length: 20000\r\n\r\n" + SPACE),
    (lambda: HttpReader(Limits()), b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" + SPACE),
]


@pytest.fixture(params=FACES, ids=["lines", "agtp", "http"])
def face(request: pytest.FixtureRequest) -> tuple[Reader[Any], bytes]:
    kind, data = request.param
    return kind(), data


def test_nothing_is_held_between_two_requests(face: tuple[Reader[Any], bytes]) -> None:
    reader, data = face
    for _ in range(2):
        reader.receive_data(data)
        assert not isinstance(reader.next_event(), Pause)
        assert reader.next_event() is NEED_DATA
        assert (reader.buffered, reader.held) == (0, 0)


def test_an_unfinished_request_is_held_until_it_is_discarded(face: tuple[Reader[Any], bytes]) -> None:
    reader, data = face
    for piece in (data[:5000], data[5000:-1]):
        reader.receive_data(piece)
        assert reader.next_event() is NEED_DATA
    assert reader.buffered == len(data) - 1
    assert len(SPACE) - 1 <= reader.held <= len(data)
    reader.discard()
    assert reader.held == 0


def test_requests_behind_the_one_that_was_taken_are_held(face: tuple[Reader[Any], bytes]) -> None:
    reader, data = face
    reader.receive_data(data * 3)
    reader.next_event()
    assert reader.held >= 2 * len(SPACE)
