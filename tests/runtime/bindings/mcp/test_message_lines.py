"""The output of a program becomes messages, whatever pieces it arrives in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.runtime.bindings.mcp.process import MessageLines, TooLong


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))), st.integers(1, 7))
def test_lines_are_the_same_for_every_division_into_pieces(lines: list[bytes], size: int) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    taken = MessageLines(most=100)
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert [line for piece in pieces for line in taken.feed(piece)] == lines


def test_long_line_is_dropped_and_the_next_one_is_read() -> None:
    lines = MessageLines(most=300)
    found = [line for _ in range(1000) for line in lines.feed(b"x" * 10)]
    assert found == []
    long, short = lines.feed(b"\nshort\n")
    assert isinstance(long, TooLong)
    assert short == b"short"


def test_id_of_a_long_answer_is_found_at_its_beginning_or_end() -> None:
    body = b'"result": {"id": 9, "text": "' + b"x" * 500 + b'"}'
    for line, number in (
        (b'{"jsonrpc": "2.0", "id": 7, ' + body + b"}", 7),
        (b"{" + body + b', "jsonrpc":"2.0","id":8}', 8),
        (b"{" + body + b',"id":8,"jsonrpc":"2.0"}', 8),
        (b"{" + body + b"}", None),
    ):
        [found] = MessageLines(most=100).feed(line + b"\n")
        assert isinstance(found, TooLong)
        assert found.answered == number
