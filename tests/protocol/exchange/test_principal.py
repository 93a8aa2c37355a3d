"""Which scope tokens are well formed, and which one covers which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.protocol.exchange.principal import Scopes, covers, is_scope_token, meet, parse_scopes

segment = st.from_regex(r"[a-z0-9_-]{1,8}|\*", fullmatch=True)
token = st.lists(segment, min_size=2, max_size=4).map(":".join)
near = st.lists(st.sampled_from("ab*"), min_size=2, max_size=4).map(":".join)
"""Tokens of an alphabet so small that they meet often."""


@pytest.mark.requirement("CORE-7.5-1")
@pytest.mark.parametrize("text", ["booking:room", "mcp:tools:execute", "booking:*", "*:query", "a_b-1:c"])
def test_a_token_is_two_or_more_segments(text: str) -> None:
    assert is_scope_token(text)


@pytest.mark.requirement("CORE-7.5-1")
@pytest.mark.parametrize("text", ["", "booking", "Booking:room", "booking:", ":room", "a:b*", "a b:c", "a:b\n"])
def test_any_other_text_is_not_a_token(text: str) -> None:
    assert not is_scope_token(text)


@pytest.mark.requirement("CORE-7.5-2")
@rows(
    "granted, wanted, expected",
    ("booking:room", "booking:room", True),
    ("booking:*", "booking:room", True),
    ("*:query", "documents:query", True),
    ("booking:*", "booking:room:write", True),
    ("*:query", "documents:read:query", False),
    ("booking:room", "booking:*", False),
    ("booking:room", "booking:room:write", False),
    ("mcp:tools:execute", "mcp:tools", False),
)
def test_a_star_matches_one_segment_and_at_the_end_any_tail(granted: str, wanted: str, expected: bool) -> None:
    assert covers(granted, wanted) is expected


@given(token)
def test_every_token_covers_itself(text: str) -> None:
    assert covers(text, text)


@given(token, token, token)
def test_covering_is_transitive(a: str, b: str, c: str) -> None:
    if covers(a, b) and covers(b, c):
        assert covers(a, c)


@pytest.mark.requirement("CORE-2.2-1", "CORE-7.5-3")
@given(st.lists(token, min_size=1, max_size=5))
def test_a_header_is_read_regardless_of_white_space(tokens: list[str]) -> None:
    assert parse_scopes(" ,\t".join(tokens)) == Scopes(tokens)


def test_first_invalid_or_surplus_token_is_refused_and_missing_scopes_keep_their_order() -> None:
    assert parse_scopes("booking:room, nonsense") == "nonsense"
    assert parse_scopes("") == ""
    assert isinstance(parse_scopes(",".join(["a:b"] * 256)), Scopes)
    assert isinstance(parse_scopes(",".join(["a:b"] * 257)), str)
    assert Scopes(["b:*"]).missing(["z:a", "b:c", "a:a"]) == ["z:a", "a:a"]


@given(near, near)
def test_covering_is_by_segment_with_any_tail_behind_a_last_star(granted: str, wanted: str) -> None:
    have, want = granted.split(":"), wanted.split(":")
    fits = len(have) == len(want) or (len(have) < len(want) and have[-1] == "*")
    assert covers(granted, wanted) is (fits and all(a in ("*", b) for a, b in zip(have, want, strict=False)))


@pytest.mark.requirement("CORE-7.5-3")
@pytest.mark.parametrize("separator", ["\x1c", "\x1f", "\x85", "\xa0", "\u2003", "\x0b", "\r", "\n", "\0"])
def test_only_spaces_and_tabs_may_surround_a_token(separator: str) -> None:
    assert parse_scopes(f"a:b,{separator}c:d") == f"{separator}c:d"
    assert parse_scopes(f"a:b{separator}") == f"a:b{separator}"
    assert not is_scope_token(f"a:{separator}b")


@given(st.text(max_size=40))
def test_any_text_is_read_or_given_back(text: str) -> None:
    found = parse_scopes(text)
    assert isinstance(found, str) or all(is_scope_token(one) for one in found)


@given(near, near, near)
def test_two_tokens_meet_in_what_both_cover(one: str, other: str, wanted: str) -> None:
    met = meet(one, other)
    assert met == meet(other, one)
    assert (met is not None and covers(met, wanted)) is (covers(one, wanted) and covers(other, wanted))


@given(st.lists(near, max_size=4), st.lists(near, max_size=4), near)
def test_two_sets_have_in_common_what_both_cover(one: list[str], other: list[str], wanted: str) -> None:
    both = Scopes(one) & Scopes(other)
    assert both.covers(wanted) is (Scopes(one).covers(wanted) and Scopes(other).covers(wanted))
    assert all(map(is_scope_token, both))
