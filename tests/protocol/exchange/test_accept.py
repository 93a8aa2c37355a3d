from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.exchange.headers import names_manifest, negotiate, prefers_agis


@pytest.mark.parametrize(
    "accept",
    [
        "application/agis",
        "Application/AGIS",
        "application/agis+json",
        "application/agis;q=0.5",
        "application/agis; charset=utf-8; q=0.5, */*;q=0.1",
        "application/vnd.agtp.manifest+json;q=0.2, application/agis;q=0.3",
        "application/agis, application/json",
    ],
)
def test_an_accept_that_names_the_agis_document_prefers_it(accept: str) -> None:
    assert prefers_agis({"accept": accept})


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/*",
        "application/json",
        "application/agis;q=0",
        "application/agis;q=often",
        "application/agis;q=nan",
        "application/agis;q=2",
        "application/agisx",
        "application/vnd.agtp.manifest+json, application/agis;q=0.9",
        "application/agis," + "a" * 2000,
    ],
)
def test_an_accept_with_a_higher_weight_or_no_type_does_not_prefer_agis(accept: str) -> None:
    assert not prefers_agis({"accept": accept})


def test_without_the_header_nothing_is_preferred() -> None:
    assert not prefers_agis({})


@given(st.text(max_size=200))
def test_no_header_is_too_strange(accept: str) -> None:
    assert prefers_agis({"accept": accept}) in (True, False)


@pytest.mark.parametrize(
    ("accept", "named"),
    [
        ("application/vnd.agtp.manifest+json", True),
        ("text/html, application/vnd.agtp.manifest+json;q=0.1", True),
        ("application/vnd.agtp.manifest+json;q=0", False),
        ("application/json", False),
        ("*/*", False),
    ],
)
def test_the_manifest_is_named_by_its_own_type_only(accept: str, named: bool) -> None:
    assert names_manifest({"accept": accept}) is named


OFFERS = ("application/json", "application/agis", "text/markdown", "text/plain", "text/html")


@pytest.mark.parametrize(
    ("accept", "best"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("application/agis", "application/agis"),
        ("application/agis, */*", "application/agis"),
        ("*/*, application/agis;q=0.5", "application/json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("text/*", "text/markdown"),
        ("text/*, text/markdown;q=0", "text/plain"),
        ("text/plain;q=0.9, text/markdown", "text/markdown"),
        ("TEXT/Plain", "text/plain"),
        ("image/png", "application/json"),
        ("application/json;q=0", "application/json"),
        ("a" * 2000, "application/json"),
    ],
)
def test_the_offer_that_suits_best_is_chosen_and_never_none(accept: str | None, best: str) -> None:
    assert negotiate({} if accept is None else {"accept": accept}, OFFERS) == best


@given(st.text(max_size=200))
def test_every_accept_header_selects_an_offer(accept: str) -> None:
    assert negotiate({"accept": accept}, OFFERS) in OFFERS
