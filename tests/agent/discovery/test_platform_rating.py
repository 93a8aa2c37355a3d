"""The public platform's points, as measured on its validator."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.live import AI

from bespeak.agent.discovery.score import is_specific, rate, read_platform_data

ONE: dict[str, Any] = AI["capabilities"][0]


def changed(**members: Any) -> dict[str, Any]:
    return {**AI, **members}


def service(**members: Any) -> dict[str, Any]:
    return changed(service={**AI["service"], **members})


def capability(**members: Any) -> dict[str, Any]:
    return changed(capabilities=[{**ONE, **members}])


@pytest.mark.parametrize(
    ("points", "grade", "data"),
    [
        (100, "Excellent", AI),
        (91, "Excellent", changed(aiendpoint="")),
        (100, "Excellent", changed(aiendpoint="2.7")),
        (91, "Excellent", service(name="")),
        (87, "Good", service(description="")),
        (98, "Excellent", service(description="Flights.")),
        (98, "Excellent", service(description="x" * 151)),
        (95, "Excellent", service(category=[])),
        (95, "Excellent", changed(auth=None)),
        (95, "Excellent", changed(meta={})),
        (96, "Excellent", changed(token_hints=None)),
        (65, "Basic", changed(capabilities=[])),
        (65, "Basic", changed(capabilities="none")),
        (90, "Excellent", capability(returns="")),
        (96, "Excellent", capability(returns="flight_id")),
        (98, "Excellent", capability(description="x" * 101)),
        (97, "Excellent", capability(description="short")),
        (96, "Excellent", capability(method="FETCH")),
        (80, "Good", capability(id="")),
        (100, "Excellent", changed(auth={}, token_hints={})),
        (95, "Excellent", service(category="travel")),
        (89, "Good", service(description=" ")),
        (90, "Excellent", changed(capabilities=[ONE, {**ONE, "returns": "a"}, {**ONE, "id": "", "returns": ""}])),
        (98, "Excellent", service(description="\U0001f6eb" * 76)),
        (15, "Poor", {}),
        (15, "Poor", [1]),
        (0, "Poor", None),
    ],
)
def test_a_document_has_the_points_of_the_platform(points: int, grade: str, data: dict[str, Any] | None) -> None:
    assert rate(data, 0.1) == (points, grade)


def test_a_slow_answer_counts_as_none() -> None:
    assert rate(AI, 3.5).points == 0
    assert rate(AI, None).points == 100


@pytest.mark.parametrize(
    ("text", "specific"),
    [
        ("a, b", False),
        ("id, name", True),
        ("items[]", True),
        (7, False),
        ("withdrawal", False),
        ("room with a view", True),
    ],
)
def test_returns_are_specific_by_their_signs(text: object, specific: bool) -> None:
    assert is_specific(text) is specific


@pytest.mark.parametrize(
    ("body", "data"),
    [(b'\xef\xbb\xbf{"a": 1, "a": 2}', {"a": 2}), (b"<html>", None), (b"[" * 100_000, None), (b"null", None)],
)
def test_body_is_read_as_the_platform_reads_it(body: bytes, data: object) -> None:
    assert read_platform_data(body) == data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*AI, "other"), JSON)))
def test_any_document_has_a_rating(data: dict[str, Any]) -> None:
    assert 0 <= rate(data, 1.0).points <= 100
