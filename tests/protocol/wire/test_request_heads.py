"""The cached ways to a parsed head: the same result as line by line, and nothing cached beyond its key."""

from __future__ import annotations

import itertools

from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.protocol.wire.head import MOST, RequestHead, RequestHeads, parse_any_request_head, parse_request_head
from bespeak.protocol.wire.messages import Limits

SMALL = Limits(line=40, head=400, headers=5, body=30)

LINES = st.sampled_from(
    [
        b"Agent-ID: a\r\n",
        b"agent-id: b\r\n",
        b"Accept: x\r\n",
        b"Accept:x\n",
        b"X: \xc3\xa4\r\n",
        b"X: \xff\r\n",
        b"X:\ta\tb \r\n",
        b"X : a\r\n",
        b": a\r\n",
        b" folded\r\n",
        b"Task-ID: t-1\r\n",
        b"Task-ID: two words\r\n",
        b"Task-ID: \r\n",
        b"Task-ID: t\n",
        b"Task-ID: t\r\r\n",
        b"Task-ID: \xc3\xa4\r\n",
        b"task-id: other\r\n",
        b"Request-ID: r-1\r\n",
        b"Request-ID: r\tq\r\n",
        b"Content-Length: 4\r\n",
        b"Content-Length: 04 \r\n",
        b"Content-Length: 31\r\n",
        b"Content-Length: x\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r",
    ]
)
STARTS = st.sampled_from(
    [
        b"AGTP/1.0 QUERY /rooms?x=1\r\n",
        b"AGTP/1.0 QUERY /rooms\n",
        b"AGTP/1.0 QUERY\r\n",
        b"AGTP/1.0 QUERY /a \r\n",
        b"AGTP/1.0 QUERY /" + b"x" * 22 + b"\r\n",
        b"AGTP/1.0 QUERY /" + b"x" * 23 + b"\r\n",
        b"AGTP/1.0 QUERY /a",
        b"AGTP/1.1 QUERY /\r\n",
        b"\r\nTask-ID: t\r\n",
        b"",
    ]
)
HEADS = st.tuples(STARTS, st.lists(LINES | st.binary(max_size=5), max_size=7).map(b"".join)).map(b"".join)


@given(HEADS)
@example(b"AGTP/1.0 QUERY /\r\nTask-ID: t")
@example(b"AGTP/1.0 QUERY /\r\nA: b\r\nA: b\r\nA: b\r\nTask-ID: t\r\nRequest-ID: r\r\nA: b\r\n")
def test_a_head_parsed_in_one_pass_is_the_head_parsed_line_by_line(head: bytes) -> None:
    assert parse_request_head(head, SMALL) == parse_any_request_head(head, SMALL)


@given(st.lists(HEADS, min_size=1, max_size=6))
def test_heads_seen_before_change_no_result(heads: list[bytes]) -> None:
    known = RequestHeads(SMALL)
    for head in [*heads, *heads]:
        assert known[head] == parse_any_request_head(head, SMALL)


def test_ids_are_added_to_the_cached_head() -> None:
    known = RequestHeads(Limits())
    head = b"AGTP/1.0 BOOK /room\r\nTask-ID: t%d\r\nAgent-ID: a\r\nRequest-ID: r%d\r\n"
    for number in range(3):
        found = known[head % (number, number)]
        assert isinstance(found, RequestHead)
        assert found.headers == {"task-id": f"t{number}", "agent-id": "a", "request-id": f"r{number}"}


def test_an_id_of_one_request_is_in_no_other() -> None:
    known = RequestHeads(Limits())
    lines = (b"", b"Task-ID: t\r\n", b"Request-ID: r\r\n", b"Authorization: Bearer secret\r\n")
    for chosen in itertools.product(lines, repeat=2):
        head = b"AGTP/1.0 BOOK /room\r\n" + b"".join(chosen)
        assert known[head] == parse_any_request_head(head, Limits())


def test_strangers_do_not_choose_how_much_is_remembered() -> None:
    known = RequestHeads(Limits())
    for number in range(3 * MOST):
        assert isinstance(known[b"AGTP/1.0 BOOK /%d\r\n" % number], RequestHead)
        assert isinstance(known[b"AGTP/1.0 BOOK /%d\r\nTask-ID: t\r\n" % number], RequestHead)
    assert len(known) <= MOST
