"""A candidate is an agent, an endpoint here or one elsewhere, and anything else is told what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.extensions.monitors.routing import RouteCandidate, parse_candidate

AGENT = "a" * 64


@pytest.mark.parametrize(
    ("written", "kind", "name"),
    [
        (AGENT, "agent", AGENT),
        ({"agent": AGENT, "attributes": {"topic": "bills"}}, "agent", AGENT),
        ("BOOK /room", "endpoint", "BOOK /room"),
        ({"method": "NOTIFY"}, "endpoint", "NOTIFY /"),
        ({"service": "agtp://b.example", "method": "BOOK", "path": "/room"}, "service", "agtp://b.example BOOK /room"),
    ],
)
def test_the_form_of_a_candidate_says_what_it_is(written: Any, kind: str, name: str) -> None:
    candidate = parse_candidate(written)
    assert isinstance(candidate, RouteCandidate)
    assert (candidate.kind, candidate.name) == (kind, name)


@pytest.mark.parametrize(
    "written",
    [
        "room",
        "agtp://b.example",
        {"agent": AGENT, "method": "BOOK"},
        {"method": "BOOK", "attributes": 7},
        {"method": "BOOK", "when": []},
        {"method": "BOOK", "path": "/a b"},
        {"method": "BOOK", "path": "/a\r\nX: y"},
    ],
)
def test_what_is_not_a_candidate_has_a_fault(written: Any) -> None:
    assert isinstance(parse_candidate(written), str)


@given(
    st.text()
    | st.dictionaries(st.sampled_from(["agent", "service", "method", "path", "when", "x"]), st.none() | st.text())
)
def test_anything_is_a_candidate_or_a_fault(written: Any) -> None:
    assert isinstance(parse_candidate(written), RouteCandidate | str)
