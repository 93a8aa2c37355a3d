"""Requests from bytes: heads that repeat on a connection are read like those that do not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.protocol.exchange.messages import Malformed, Request
from bespeak.protocol.translation import RequestReader
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, NEED_DATA, Limits

NAMES = ("Request-ID", "Task-ID", "Idempotency-Key", "request-id", "Host")
VALUES = ("a-1", "b.2", "", "x y", "é", "1" * 300, "a\rb", "a\tb", "a:b_c")
MESSAGES = st.builds(
    lambda path, headers, ending, body: (
        f"AGTP/1.0 BOOK {path}{ending}"
        + "".join(f"{name}: {value}{ending}" for name, value in headers)
        + f"Content-Length: {len(body)}{ending}{ending}{body}"
    ).encode(),
    st.sampled_from(["/room", "/rooms"]),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=3),
    st.sampled_from(["\r\n", "\r\n", "\n"]),
    st.sampled_from(["", "{}", "\r\nTask-ID: x\r\n\r\n"]),
)


def read(reader: RequestReader, data: bytes) -> list[object]:
    reader.receive_data(data)
    found: list[object] = []
    while (event := reader.next_event()) is not NEED_DATA:
        found.append(_plain(event))
        if isinstance(event, Malformed):
            break
    return found


def _plain(event: object) -> object:
    if not isinstance(event, Request):
        return event
    # The order of headers with different names means nothing.
    return event.method, event.path, event.query, dict(event.headers), sorted(event.headers), event.body


@given(st.lists(MESSAGES, min_size=1, max_size=5), st.data())
@example([b"AGTP/1.0 A /\r\nTask-ID: 1\r\n\r\n", b"AGTP/1.0 A /\r\nTask-ID: 2\r\nTask-ID: 3\r\n\r\n"], None)
def test_any_sequence_of_requests_is_read_as_if_each_were_the_first(messages: list[bytes], data: st.DataObject) -> None:
    expected: list[object] = []
    for message in messages:
        expected += read(RequestReader(), message)
        if isinstance(expected[-1], Malformed):
            break
    whole = b"".join(messages)
    cuts = [] if data is None else sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=4)))
    reader = RequestReader()
    found: list[object] = []
    for start, end in pairwise([0, *cuts, len(whole)]):
        found += read(reader, whole[start:end])
        if found and isinstance(found[-1], Malformed):
            break
    assert found == expected


@pytest.mark.parametrize("length", [10, 60])
def test_a_longer_id_does_not_get_around_the_limit_of_a_head(length: int) -> None:
    def message(value: str) -> bytes:
        return f"AGTP/1.0 BOOK /room\r\nRequest-ID: {value}\r\n\r\n".encode()

    limits = Limits(line=DEFAULT_LIMITS.line, head=60, headers=10, body=10)
    reader = RequestReader(limits)
    assert len(read(reader, message("a"))) == 1
    [event] = read(reader, message("b" * length))
    [alone] = read(RequestReader(limits), message("b" * length))
    assert event == alone
    assert isinstance(event, Malformed) is (length == 60)
