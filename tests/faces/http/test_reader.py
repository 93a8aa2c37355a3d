"""Bytes of HTTP, whole or in pieces, good or bad: requests or one fault, and never anything else."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.faces.http.reader import PARSED, Asked, Heads, HttpHead, HttpRequestReader, split_target
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.wire.messages import NEED_DATA, Limits, Pause

SMALL = Limits(line=200, head=1000, headers=10, body=500)
REQUEST = b"POST /room:book?x=1 HTTP/1.1\r\nHost: a\r\nAgent-ID: b\r\nContent-Length: 3\r\n\r\nabc"
CHUNKED = b"POST /r HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nT: u\r\n\r\n"
PAIRS = [(b"host", b"a"), (b"agent-id", b"b"), (b"content-length", b"3")]
NAMED = {"host": "a", "agent-id": "b", "content-length": "3"}
ASKED = Asked(HttpHead("POST", "/room:book", "x=1", "1.1", PAIRS, NAMED, True), b"abc")
BLANKS = (b"\n", b"\r", b"\r\n", b"\r\n\r\n", b"\n\r\n\r\n")


def read(*pieces: bytes, limits: Limits = SMALL) -> tuple[list[Asked], Malformed | None]:
    found: list[Asked] = []
    reader = HttpRequestReader(limits)
    for piece in pieces:
        reader.receive_data(piece)
        fault = take(reader, found)
        if fault is not None:
            return found, fault
    return found, None


def take(reader: HttpRequestReader, found: list[Asked]) -> Malformed | None:
    """Take the complete requests; return the fault after them, if any."""
    while not isinstance(event := reader.next_event(), Pause):
        if isinstance(event, Malformed):
            return event
        found.append(event)
    return None


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges) if start < end]


@given(st.lists(st.integers(0, 1000), max_size=8))
def test_how_bytes_are_cut_changes_nothing(places: list[int]) -> None:
    found, fault = read(*cut(REQUEST + CHUNKED + REQUEST, places))
    assert fault is None
    assert [found[0], found[2]] == [ASKED, ASKED]
    assert (found[1].body, found[1].head.pairs) == (b"abc", [(b"host", b"a"), (b"transfer-encoding", b"chunked")])


@given(st.binary(max_size=300), st.lists(st.integers(0, 1000), max_size=5))
def test_any_bytes_are_requests_or_a_fault(data: bytes, places: list[int]) -> None:
    found, fault = read(*cut(data, places))
    assert all(asked.head.path for asked in found)
    assert fault is None or (400 <= fault.status < 600 and fault.code and fault.message)


@given(st.integers(0, len(REQUEST) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_request_never_gives_more_than_was_sent(at: int, damage: bytes) -> None:
    found, fault = read(REQUEST[:at] + damage + REQUEST[at + len(damage) :])
    assert len(found) <= 1
    assert fault is None or fault.status != 500


def test_bodies_and_heads_beyond_their_limits_are_given_up_at_once() -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    assert read(head % 500 + b"x" * 500)[0][0].body == b"x" * 500
    assert read(head % 501) == ([], Malformed(413, "content-too-large", "The body is larger than 500 bytes."))
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"fa\r\n" + b"x" * 250 + b"\r\n"
    assert read(head + chunks * 2 + b"0\r\n\r\n")[0][0].body == b"x" * 500
    found, fault = read(head + chunks * 2, b"1\r\nx")
    assert found == []
    assert fault == Malformed(413, "content-too-large", "The body is larger than 500 bytes.")
    pieces = [b"GET / HTTP/1.1\r\nHost: a\r\nA: ", *[b"x" * 100] * 50]
    assert read(*pieces[:11])[1] is None
    assert read(*pieces[:12])[1] == Malformed(431, "head-too-large", "The head is larger than 1000 bytes.")
    head = b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"x" * 1000 + b"\r\n\r\n"
    assert read(head)[1] == Malformed(431, "head-too-large", "The head is larger than 1000 bytes.")
    assert read(*(head[at : at + 10] for at in range(0, len(head), 10)))[1] is not None


def test_small_heads_after_large_bodies_and_any_number_of_upgrades_are_read() -> None:
    body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1400\r\n\r\n" + b"x" * 1400
    begun = b"GET /next HTTP/1.1\r\nHost: a"
    found, fault = read(body + begun, b"\r\n\r\n", limits=Limits(head=200, body=2000))
    assert fault is None
    assert [asked.head.path for asked in found] == ["/", "/next"]
    asking = b"GET /r HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    found, fault = read(asking * 3000 + REQUEST)
    assert (len(found), fault) == (3001, None)
    assert found[-1] == ASKED


def test_heads_are_remembered_if_they_are_plain_and_give_the_same_request() -> None:
    heads: Heads = {}
    found: list[Asked] = []
    for _ in range(3):
        reader = HttpRequestReader(SMALL, heads)
        for piece in (REQUEST, REQUEST.replace(b"abc", b"xyz"), REQUEST + REQUEST, REQUEST[:-1], b"c"):
            reader.receive_data(piece)
            assert take(reader, found) is None
        assert reader.buffered == 0
    assert len(heads) == 1
    bodies = [b"abc", b"xyz", b"abc", b"abc", b"abc"] * 3
    assert found == [Asked(ASKED.head, body) for body in bodies]
    heads: Heads = {}
    for line in (b"Connection: close", b"Expect: 100-continue", b"Transfer-Encoding: chunked"):
        reader = HttpRequestReader(SMALL, heads)
        reader.receive_data(b"POST / HTTP/1.1\r\nHost: a\r\n" + line + b"\r\n\r\n" + b"0\r\n\r\n" * (b"chunk" in line))
    assert heads == {}
    reader = HttpRequestReader(SMALL, heads)
    for number in range(2000):
        reader.receive_data(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number)
        assert isinstance(reader.next_event(), Asked)
        assert len(heads) <= 512


@pytest.mark.parametrize("blank", [b"\n\r\n\r\n", b"\r\r\n\r\n", b"\r\n\r\n\r\n", b"\n\n\r\n\r\n", b"\n\r\n\r\nabc"])
def test_blank_lines_after_a_request_are_not_a_cache_key(blank: bytes) -> None:
    heads: Heads = {}
    victim, stranger = HttpRequestReader(SMALL, heads), HttpRequestReader(SMALL, heads)
    secret = b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n"
    for piece in (secret, blank, REQUEST, blank, secret, blank):
        victim.receive_data(piece)
    assert all(key.startswith((b"GET / ", b"POST /room:book")) for key in heads)
    found: list[Asked] = []
    for body in (b"", b"abc"):
        stranger.receive_data(blank + body)
        take(stranger, found)
    assert found == []


@given(st.lists(st.sampled_from([REQUEST, CHUNKED, *BLANKS, b"GET / HTTP/1.1", b"abc"]), max_size=8))
def test_a_remembered_head_is_the_one_a_new_reader_reads_from_its_key(pieces: list[bytes]) -> None:
    heads: Heads = {}
    reader = HttpRequestReader(SMALL, heads)
    for piece in pieces:
        reader.receive_data(piece)
        take(reader, [])
    for key, (head, length) in heads.items():
        assert read(key + b"\r\n\r\n" + b"x" * length) == ([Asked(head, b"x" * length)], None)


def test_targets_hosts_and_expectations_of_a_head_are_read() -> None:
    assert split_target(b"/a?b?c") == ("/a", "b?c")
    assert split_target(b"http://h/a?b") == ("/a", "b")
    assert split_target(b"http://h") == ("/", "")
    assert split_target(b"http://h?b=/a") == ("/", "b=/a")
    assert split_target(b"*") == ("*", "")
    found, _ = read(b"GET http://evil.example?x HTTP/1.1\r\nHost: a\r\nAgent-ID: b\r\n\r\n")
    assert found[0].head.headers == {"host": "evil.example", "agent-id": "b"}
    assert found[0].head.pairs == [(b"host", b"evil.example"), (b"agent-id", b"b")]
    reader = HttpRequestReader(SMALL)
    reader.receive_data(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
    assert (reader.expects, reader.next_event()) == (True, NEED_DATA)
    assert reader.buffered > 0
    reader.receive_data(b"x")
    assert not reader.expects
    assert isinstance(reader.next_event(), Asked)
    assert reader.buffered == 0


@rows(
    "lines",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    *(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"Content-Length: 5, 5\r\n"),
    *(b"Content-Length: +5\r\n", b"Content-Length : 5\r\n"),
    b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",  # one more encoding
)
def test_a_body_with_two_lengths_or_encodings_is_refused(lines: bytes) -> None:
    found, fault = read(b"POST /r HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n0\r\n\r\n")
    assert (found, fault and fault.status) == ([], 501 if b"gzip" in lines else 400)


def test_held_bytes_are_those_of_unread_requests_and_released_when_discarded() -> None:
    reader = HttpRequestReader(SMALL)
    for data in (REQUEST, CHUNKED):
        reader.receive_data(data)
        assert take(reader, []) is None
        assert (reader.held, reader._url, reader._headers, reader._body) == (0, b"", [], b"")
    for _ in range(100):
        reader.receive_data((REQUEST[10:] if reader.buffered else REQUEST) + REQUEST[:10])
        assert take(reader, []) is None
        assert 10 <= reader.buffered <= 2 * len(REQUEST)
    reader = HttpRequestReader(SMALL)
    reader.receive_data(REQUEST * 10)
    assert reader.held == len(REQUEST) * 10 + PARSED * 10
    reader = HttpRequestReader(SMALL)
    reader.receive_data(REQUEST + REQUEST[:-1])
    reader.discard()
    assert reader.held == 0
    reader.receive_data(REQUEST)
    assert (reader.held, reader.next_event()) == (0, NEED_DATA)
    reader = HttpRequestReader(Limits())
    reader.receive_data(b"POST /r HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 10_000)
    assert reader.buffered > 60_000
    assert reader.held <= reader.buffered
    assert len(reader._body) == 10_000


@pytest.mark.parametrize("data", [b"GET /" + b"a" * 300, b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 12])
def test_a_head_is_refused_as_soon_as_a_limit_is_exceeded(data: bytes) -> None:
    _, fault = read(data)
    assert fault.status in (414, 431)
