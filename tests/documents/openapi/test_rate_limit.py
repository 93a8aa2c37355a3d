"""Rate limits that a description states in an extension."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.openapi.reading import OK, document, read

from bespeak.documents.adoption.deployment import Imported
from bespeak.documents.openapi.document_text import DescriptionFile, Spot
from bespeak.documents.openapi.facade import import_description
from bespeak.documents.openapi.reader import read_rate
from bespeak.text.source.tree import Location


def spot(value: Any) -> Spot:
    return Spot(value, DescriptionFile("api.json", {}, lambda _: Location("api.json")))


@pytest.mark.parametrize(
    ("extension", "rate"),
    [
        ({"x-ratelimit": "100/min"}, "100/min"),
        ({"x-rate-limit": "5 requests per second"}, "5/s"),
        ({"X-RateLimit": 30}, "30/min"),
        ({"x-rateLimit": {"limit": 1000, "period": "hour"}}, "1000/h"),
        ({"x-rate-limits": {"requests": 10, "window": 1}}, "10/s"),
        ({"x-throttling": {"per_minute": 20}}, "20/min"),
        ({"x-ratelimit": "unlimited"}, None),
        ({"x-ratelimit": {"limit": True}}, None),
        ({"x-other": 5}, None),
        ([], None),
    ],
)
def test_the_usual_forms_are_read(extension: Any, rate: str | None) -> None:
    found = read_rate(spot(extension))
    assert (str(found) if found else None) == rate


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=20)


@given(VALUES | st.lists(VALUES) | st.dictionaries(st.sampled_from(["limit", "period", "per_minute", "x"]), VALUES))
def test_any_value_is_read(value: Any) -> None:
    read_rate(spot({"x-ratelimit": value}))


def imported(**parts: Any) -> Imported:
    paths = {"/rooms": {"get": {"responses": OK, "x-ratelimit": "10/min"}}, "/guests": {"get": {"responses": OK}}}
    return import_description(read(document(paths, **parts))[0])


@pytest.mark.requirement("AI-6.3-1")
def test_a_stated_limit_is_written_and_a_missing_one_is_a_guess() -> None:
    assert '[limits.rate]\nagent = "600/h"\n' in imported(**{"x-rate-limit": "600/hour"}).files["bespeak.toml"]
    default = imported().files["bespeak.toml"]
    assert "# review (0.3): at most 120/min calls of each agent: the description states no limit\n" in default
    assert 'agent = "120/min"\n' in default


def test_the_limit_of_an_operation_is_that_of_its_endpoint() -> None:
    assert 'endpoints = { "LIST /rooms" = "10/min" }\n' in imported().files["bespeak.toml"]
