"""Whom a browser may call for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.faces.http.face import Origins

URL = "https://rooms.example"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:1", "127.0.0.2", "[::1]:80", "rooms.example"]
)
def test_a_service_on_this_machine_answers_as_itself(host: str) -> None:
    assert Origins(url=URL, loopback=True).check_host({"host": host}) is None


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "a b",
            "[",
            "x@localhost",
            "x" * 5000,
        ),
        *("localhost/.evil.example", "localhost#.evil.example", "localhost?evil.example", "local\thost"),
        *("localhost\\.evil.example", "127.1", "2130706433"),
        *("[::1].evil.example", "[::1]evil.example:80", "evil.example[::1]", "[::1]:80:80", "[[::1]]"),
    ],
)
def test_a_bent_name_is_not_served(host: str) -> None:
    found = Origins(url=URL, loopback=True).check_host({"host": host})
    assert found is not None
    assert (found.status, found.code) == (421, "host-not-served")
    assert len(found.message) < 300


def test_beyond_this_machine_the_host_is_for_the_network_to_decide() -> None:
    assert Origins().check_host({"host": "anything.example"}) is None


@pytest.mark.parametrize(
    "origin", ["https://rooms.example", "https://rooms.example:443", "https://shop.example", "http://here:81"]
)
def test_own_pages_and_those_let_in_may_call(origin: str) -> None:
    origins = Origins(url=URL, allowed=("https://shop.example",))
    assert origins.check_origin({"origin": origin, "host": "here:81"}) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "http://shop.example",
        "https://shop.example.evil.example",
        "http://here",
        "https://shop.example:444",
        "https://x@shop.example",
        "https://shop.example/",
        "https://shop.example#.evil.example",
        "https://shop.example, https://evil.example",
        "file://",
        "https://[",
        "x" * 5000,
        f"https://shop.example:{'0' * 300}443",
    ],
)
def test_other_pages_may_not(origin: str) -> None:
    found = Origins(url=URL, allowed=("https://shop.example",)).check_origin({"origin": origin, "host": "here:81"})
    assert found is not None
    assert (found.status, found.code) == (403, "origin-not-allowed")


def test_user_info_is_not_part_of_an_origin() -> None:
    assert Origins().check_origin({"origin": "https://evil.example", "host": "x@evil.example"}) is not None


def test_a_wildcard_allows_every_origin_and_other_clients_are_not_checked() -> None:
    assert Origins(allowed=("*",)).check_origin({"origin": "https://evil.example"}) is None
    assert Origins().check_origin({}) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_gets_a_verdict(origin: str, host: str) -> None:
    origins = Origins(loopback=True)
    origins.check_origin({"origin": origin, "host": host})
    origins.check_host({"host": host})
