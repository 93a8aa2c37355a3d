"""Which scope tokens are well formed, and which one covers which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.exchange.scope import Scopes, covers, is_scope_token, parse_scopes

segment = st.from_regex(r"[a-z0-9_-]{1,8}|\*", fullmatch=True)
token = st.lists(segment, min_size=2, max_size=4).map(":".join)


@pytest.mark.parametrize("text", ["booking:room", "mcp:tools:execute", "booking:*", "*:query", "a_b-1:c"])
def test_a_token_is_two_or_more_segments(text: str) -> None:
    assert is_scope_token(text)


@pytest.mark.parametrize("text", ["", "booking", "Booking:room", "booking:", ":room", "a:b*", "a b:c", "a:b\n"])
def test_anything_else_is_none(text: str) -> None:
    assert not is_scope_token(text)


@pytest.mark.parametrize(
    ("granted", "wanted", "expected"),
    [
        ("booking:room", "booking:room", True),
        ("booking:*", "booking:room", True),
        ("*:query", "documents:query", True),
        ("booking:*", "booking:room:write", True),
        ("*:query", "documents:read:query", False),
        ("booking:room", "booking:*", False),
        ("booking:room", "booking:room:write", False),
        ("mcp:tools:execute", "mcp:tools", False),
    ],
)
def test_a_star_stands_for_one_segment_and_at_the_end_for_any_tail(granted: str, wanted: str, expected: bool) -> None:
    assert covers(granted, wanted) is expected


@given(token)
def test_every_token_covers_itself(text: str) -> None:
    assert covers(text, text)


@given(token, token, token)
def test_covering_is_transitive(a: str, b: str, c: str) -> None:
    if covers(a, b) and covers(b, c):
        assert covers(a, c)


@given(st.lists(token, min_size=1, max_size=5))
def test_a_header_is_read_back_whatever_the_white_space(tokens: list[str]) -> None:
    assert parse_scopes(" ,\t".join(tokens)) == Scopes(tokens)


def test_the_first_text_that_is_no_token_is_given_back() -> None:
    assert parse_scopes("booking:room, nonsense") == "nonsense"
    assert parse_scopes("") == ""


def test_missing_scopes_keep_their_order() -> None:
    assert Scopes(["b:*"]).missing(["z:a", "b:c", "a:a"]) == ["z:a", "a:a"]


def test_more_tokens_than_any_agent_needs_are_refused() -> None:
    assert isinstance(parse_scopes(",".join(["a:b"] * 256)), Scopes)
    assert isinstance(parse_scopes(",".join(["a:b"] * 257)), str)
