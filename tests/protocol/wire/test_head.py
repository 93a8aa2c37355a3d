"""Start lines and headers: accepted ones, and the fault of each malformed head."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cases import rows

import bespeak
from bespeak.protocol.wire.head import (
    MOST,
    ONCE,
    Memory,
    RequestHead,
    RequestHeads,
    ResponseHead,
    check_beginning,
    parse_any_request_head,
    parse_request_head,
    parse_response_head,
)
from bespeak.protocol.wire.messages import Limits, Malformed

LIMITS = Limits()
LINE = b"AGTP/1.0 QUERY /rooms\r\n"


def accepted(head: bytes) -> RequestHead:
    read = parse_request_head(head, LIMITS)
    assert isinstance(read, RequestHead), read
    return read


def refused(head: bytes) -> tuple[int, str]:
    fault = parse_request_head(head, LIMITS)
    assert isinstance(fault, Malformed), fault
    return fault.status, fault.code


@pytest.mark.requirement("CORE-2.1-2", "API-5.5-1")
def test_request_line_has_version_method_and_target_split_at_the_first_question_mark() -> None:
    head = accepted(b"AGTP/1.0 BOOK /room\r\n")
    assert (head.method, head.path, head.query) == ("BOOK", "/room", "")
    assert accepted(b"AGTP/1.0 DISCOVER\r\n").path == "/"
    head = accepted(b"AGTP/1.0 SCHEDULE /meeting?date=050526&q=a?b\r\n")
    assert (head.path, head.query) == ("/meeting", "date=050526&q=a?b")


@pytest.mark.requirement("CORE-2.1-3")
@pytest.mark.requirement("API-5.6-1")
@pytest.mark.parametrize(
    "line", [b"AGTP/1.0 QUERY /a#b", b"AGTP/1.0 QUERY /a?b=#", b"AGTP/1.0 QU#ERY /", b"AGTP/1.0 #"]
)
def test_a_fragment_anywhere_in_the_line_is_refused(line: bytes) -> None:
    assert refused(line + b"\r\n") == (400, "invalid-request-line")


@pytest.mark.requirement("CORE-2.1-1")
@rows(
    "line",
    *(b"", b"AGTP/1.0", b"AGTP/1.0 ", b"AGTP/1.1 QUERY /", b"AGTP/2.0 QUERY /", b"agtp/1.0 QUERY /"),
    *(b"GET / HTTP/1.1", b" AGTP/1.0 QUERY /", b"AGTP/1.0  QUERY /", b"AGTP/1.0 QUERY  /", b"AGTP/1.0 QUERY / "),
    *(b"AGTP/1.0 QUERY / extra", b"AGTP/1.0\tQUERY /", b"AGTP/1.0 QUERY\t/", b"AGTP/1.0 QU\x00ERY /"),
    *(b"AGTP/1.0 QUERY /\x00", b"AGTP/1.0 QUERY /\x7f", b"AGTP/1.0 QUERY /\rx", b"AGTP/1.0 QUERY /\xff"),
    b"AGTP/1.0 QU\xc3\x84RY /",
)
def test_a_malformed_request_line_is_refused(line: bytes) -> None:
    assert refused(line + b"\r\nAgent-ID: a\r\n") == (400, "invalid-request-line")


def test_unusual_targets_and_methods_are_left_to_later_rules_within_the_line_limit() -> None:
    assert accepted(b"AGTP/1.0 QUERY rooms\r\n").path == "rooms"
    assert accepted("AGTP/1.0 QUERY /räume\r\n".encode()).path == "/räume"
    assert accepted(b"AGTP/1.0 %s /\r\n" % (b"A" * 8000)).method == "A" * 8000
    assert refused(b"AGTP/1.0 %s /\r\n" % (b"A" * 20_000)) == (400, "request-line-too-long")


@pytest.mark.requirement("CORE-2.2-1")
def test_header_names_are_lower_case_and_values_trimmed_utf8_and_joined_if_repeated() -> None:
    assert accepted(LINE + b"Agent-ID: \t a b \t\r\nX-Empty:\r\n").headers == {"agent-id": "a b", "x-empty": ""}
    assert accepted(LINE + "Task-ID: prüfen\tjetzt\r\n".encode()).headers == {"task-id": "prüfen\tjetzt"}
    assert accepted(LINE + b"Accept: a\r\nACCEPT: b\r\n").headers == {"accept": "a, b"}


@rows(
    "field",
    *(b"no colon", b"Name : value", b" folded: value", b"\tfolded", b": value", b"Na me: v", b"N\xc3\xa4me: v"),
    b"(x): v",
)
def test_a_malformed_header_is_refused(field: bytes) -> None:
    assert refused(LINE + b"Task-ID: t\r\n" + field + b"\r\n") == (400, "invalid-header")


@pytest.mark.parametrize("character", [b"\x00", b"\x01", b"\x0b", b"\x1b", b"\x7f", b"\r", b"\xff", b"\xed\xa0\x80"])
def test_a_control_character_or_invalid_utf8_in_a_header_is_refused(character: bytes) -> None:
    assert refused(LINE + b"Task-ID: a" + character + b"b\r\n") == (400, "invalid-header")


@pytest.mark.parametrize("name", sorted(ONCE - {"content-length"}))
def test_a_header_with_one_meaning_may_occur_only_once(name: str) -> None:
    line = name.encode() + b": a\r\n"
    assert refused(LINE + line.upper() + line) == (400, "invalid-header")


@pytest.mark.requirement("CORE-1-14")
def test_body_needs_one_content_length_and_too_many_headers_or_transfer_encoding_are_refused() -> None:
    assert accepted(LINE).length == 0
    assert refused(LINE + b"Content-Length: 3\r\nContent-Length: 3\r\n") == (400, "invalid-content-length")
    assert refused(LINE + b"Transfer-Encoding: chunked\r\n") == (400, "invalid-header")
    assert refused(LINE + b"A: b\r\n" * 129) == (400, "head-too-large")
    assert accepted(LINE + b"A: b\r\n" * 128).headers["a"].count("b") == 128


@pytest.mark.parametrize(("value", "length"), [(b"0", 0), (b"007", 7), (b" 12 ", 12)])
def test_content_length_is_a_plain_number(value: bytes, length: int) -> None:
    assert accepted(LINE + b"Content-Length:" + value + b"\r\n").length == length


@pytest.mark.parametrize(
    "value", [b"", b"-1", b"+1", b"1.0", b"1e3", b"0x10", b"1 2", b"1,1", "٣".encode(), b"9" * 16, b"9" * 5000]
)
def test_any_other_content_length_is_refused(value: bytes) -> None:
    assert refused(LINE + b"Content-Length: " + value + b"\r\n") == (400, "invalid-content-length")


@pytest.mark.parametrize("value", [LIMITS.body + 1, 10**12])
def test_a_body_beyond_the_limit_is_too_large(value: int) -> None:
    assert refused(LINE + b"Content-Length: %d\r\n" % value) == (413, "content-too-large")


@pytest.mark.requirement("CORE-2.1-5")
def test_fault_shows_only_a_short_part_of_the_message_and_a_status_line_may_lack_its_text() -> None:
    fault = parse_request_head(LINE + b"x" * 5000 + b"\r\n", LIMITS)
    assert isinstance(fault, Malformed)
    assert len(fault.message) < 200
    head = parse_response_head(b"AGTP/1.0 200\r\n", LIMITS)
    assert isinstance(head, ResponseHead)
    assert (head.status, head.reason) == (200, "")


@pytest.mark.parametrize(
    "line", [b"AGTP/1.0 OK", b"AGTP/1.0 20", b"AGTP/1.0 2000 OK", b"AGTP/1.0 000 X", b"HTTP/1.1 200 OK"]
)
def test_a_malformed_status_line_is_a_fault(line: bytes) -> None:
    fault = parse_response_head(line + b"\r\n", LIMITS)
    assert isinstance(fault, Malformed)
    assert fault.code == "invalid-status-line"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_a_fault(data: bytes) -> None:
    for head in (data, b"AGTP/1.0 " + data, LINE + data):
        read = parse_request_head(head, LIMITS)
        assert isinstance(read, RequestHead | Malformed)
        if isinstance(read, RequestHead):
            assert all(name == name.lower() for name in read.headers)
            assert " " not in read.method + read.path + read.query


SMALL = Limits(line=40, head=400, headers=5, body=30)

LINES = st.sampled_from(
    [
        *(b"Agent-ID: a\r\n", b"agent-id: b\r\n", b"Accept: x\r\n", b"Accept:x\n", b"X: \xc3\xa4\r\n"),
        *(b"X: \xff\r\n", b"X:\ta\tb \r\n", b"X : a\r\n", b": a\r\n", b" folded\r\n", b"Task-ID: t-1\r\n"),
        *(b"Task-ID: two words\r\n", b"Task-ID: \r\n", b"Task-ID: t\n", b"Task-ID: t\r\r\n"),
        *(b"Task-ID: \xc3\xa4\r\n", b"task-id: other\r\n", b"Request-ID: r-1\r\n", b"Request-ID: r\tq\r\n"),
        *(b"Content-Length: 4\r\n", b"Content-Length: 04 \r\n", b"Content-Length: 31\r\n", b"Content-Length: x\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"\r"),
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


SOURCE = Path(bespeak.__file__).parent
OF_OUR_OWN = {
    *("declared", "load_bundled", "load_schema", "_validator", "parse"),
    *("_sections", "listed", "stemmed", "word_roles"),
}
"""Functions with a cache without bound: of types, of bundled names and files, and `parse`, which lives for one call."""


def test_memory_reads_a_text_once_and_never_holds_more_than_it_may() -> None:
    seen: list[bytes] = []
    memory = Memory(lambda text: seen.append(text) or text.upper(), most=4, longest=9)
    assert [memory[b"a"], memory[b"a"], memory[b"b"]] == [b"A", b"A", b"B"]
    assert seen == [b"a", b"b"]
    memory = Memory(len, most=4, longest=9)
    for number in range(1000):
        assert memory[str(number).encode()] == len(str(number))
        assert len(memory) <= 4


def test_a_long_text_is_not_kept() -> None:
    memory = Memory(len, most=4, longest=9)
    assert memory[b"x" * (9 + 1)] == 9 + 1
    assert len(memory) == 0
    assert memory[b"x" * 9] == 9
    assert len(memory) == 1


def test_no_cache_of_arguments_is_without_bound() -> None:
    unbounded = set()
    texts = (file.read_text("utf-8") for file in SOURCE.rglob("*.py"))
    for text in (text for text in texts if "cache" in text):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(each) in ("cache", "functools.cache", "lru_cache(None)", "lru_cache(maxsize=None)")
                for each in node.decorator_list
            ):
                unbounded |= {node.name} if node.args.args else set()
    assert unbounded == OF_OUR_OWN


@rows(
    "data, named",
    (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"),
    (b"HTTP/1.1 200 OK\r\n\r\n", "an HTTP response"),
    (b"\x16\x03\x01\x02\x00", "a TLS handshake"),
    (b"\x15\x03\x03\x00\x02", "a TLS alert"),
    (b"SSH-2.0", "'S'"),
)
def test_another_protocol_is_named_by_its_first_bytes(data: bytes, named: str) -> None:
    fault = check_beginning(data, LIMITS, "invalid-request-line")
    assert fault is not None
    assert f"got {named}" in fault.message
