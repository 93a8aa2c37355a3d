from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.exchange.accept import prefers_agis


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
def test_who_names_the_agis_document_wants_it(accept: str) -> None:
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
def test_who_names_something_better_or_nothing_does_not(accept: str) -> None:
    assert not prefers_agis({"accept": accept})


def test_without_the_header_nothing_is_preferred() -> None:
    assert not prefers_agis({})


@given(st.text(max_size=200))
def test_no_header_is_too_strange(accept: str) -> None:
    assert prefers_agis({"accept": accept}) in (True, False)
