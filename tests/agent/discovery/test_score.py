"""The score of a live host, what would raise it, and the points of the public platform."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.live import AI, AI_PATH, OPENAPI_PATH, SUMMARY, SUMMARY_PATH, check, host, served
from tests.agent.discovery.web import Script, always, server_tls
from tests.cases import rows

from bespeak.agent.discovery.examination import ABSENT, PARTS, is_specific, rate, read_platform_data
from bespeak.text.diagnostics.report import Score

pytestmark = pytest.mark.anyio

ONE: dict[str, Any] = AI["capabilities"][0]
HTML = always(200, b"<html>", Content_Type="text/html")


async def scored(script: Script, **options: Any) -> Score:
    found = (await check(script, **options)).score
    assert found is not None
    return found


def ai(**members: Any) -> dict[str, Any]:
    return {AI_PATH: {**AI, **members}}


async def test_a_host_in_order_has_all_points_and_making_up_for_a_gain_brings_its_points() -> None:
    score = await scored(host())
    assert (score.points, score.gains, score.rating) == (100, [], (100, "Excellent"))
    assert [(part.name, part.of) for part in score.parts] == list(PARTS.items())
    assert sum(PARTS.values()) == 100
    score = await scored(host({"/llms.txt": served(b"# Flights", Cache_Control="", ETag="")}))
    assert score.points == 100
    worse = {AI_PATH: served({**AI, "meta": {}}, Cache_Control="", ETag="")}
    better = {AI_PATH: served({**AI, "meta": {}}, ETag="")}
    before, after = await scored(host(worse)), await scored(host(better))
    gain = next(gain for gain in before.gains if "W919" in gain.rules)
    assert after.points - before.points == gain.points == 4


@rows(
    "gain, part, pages",
    (5, "connection", None),
    (2, "connection", {ABSENT: HTML}),
    (4, "headers", {AI_PATH: served(AI, Cache_Control="no-store")}),
    (2, "headers", {AI_PATH: served(AI, ETag="")}),
    (2, "headers", {AI_PATH: served(AI, Content_Type="application/json")}),
    (1, "headers", {AI_PATH: served(AI, Access_Control_Allow_Origin="")}),
    (3.2, "document", ai(extra=1)),
    (2, "document", ai(service={**AI["service"], "category": ["aviation"]})),
    (1, "document", ai(service={key: AI["service"][key] for key in ("name", "description")})),
    (1, "document", ai(meta={})),
    (5, "capabilities", ai(capabilities=[{key: ONE[key] for key in ONE if key != "returns"}])),
    (2.5, "capabilities", ai(capabilities=[ONE, {**ONE, "id": "b", "returns": ""}])),
    (3, "agreement", {SUMMARY_PATH: {**SUMMARY, "service": "Trains"}}),
    (4, "agreement", {SUMMARY_PATH: {**SUMMARY, "methods": []}}),
    (2, "economy", ai(service={**AI["service"], "description": "Flights."})),
)
async def test_finding_costs_points_in_its_part(gain: float, part: str, pages: dict[str, Any] | None) -> None:
    score = await scored(host(pages), tls=pages is not None)
    assert (gain, part) in [(round(each.points, 2), each.part) for each in score.gains]
    assert score.points < 100


@rows(
    "script",
    host(),
    always(404),
    HTML,
    always(500),
    always(200, b"[1]"),
    always(200, b"{"),
    host({AI_PATH: always(401)}),
    host({AI_PATH: {}, OPENAPI_PATH: {}}),
    host({AI_PATH: {"aiendpoint": 1, "service": [], "capabilities": {}}}),
    host({AI_PATH: b" " * 300_000}),
)
async def test_the_points_and_what_would_raise_them_are_a_hundred_together(script: Script) -> None:
    score = await scored(script)
    whole = sum(part.points for part in score.parts) + sum(gain.points for gain in score.gains)
    assert math.isclose(whole, 100)
    assert all(0 <= part.points <= part.of for part in score.parts)
    assert [gain.points for gain in score.gains] == sorted((gain.points for gain in score.gains), reverse=True)


async def test_hosts_without_documents_have_hardly_any_points_and_ratings_of_the_platform() -> None:
    assert (await scored(always(404))).points < 20
    assert (await scored(HTML)).points < 20
    score = await scored(host(), tls=server_tls("other.test"))
    assert score.points < 10
    assert score.rating is None
    score = await scored(host({AI_PATH: served(AI, Content_Type="text/html")}))
    assert score.rating == (100, "Excellent")
    alias_only = {AI_PATH: always(404), "/ai": served(AI)}
    assert (await scored(host(alias_only))).rating is None
    assert (await scored(host(alias_only), path="/ai")).rating == (100, "Excellent")


def changed(**members: Any) -> dict[str, Any]:
    return {**AI, **members}


def service(**members: Any) -> dict[str, Any]:
    return changed(service={**AI["service"], **members})


def capability(**members: Any) -> dict[str, Any]:
    return changed(capabilities=[{**ONE, **members}])


@rows(
    "points, grade, data",
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
)
def test_a_document_has_the_points_of_the_platform(points: int, grade: str, data: dict[str, Any] | None) -> None:
    assert rate(data, 0.1) == (points, grade)


def test_a_slow_answer_counts_as_none() -> None:
    assert (rate(AI, 3.5).points, rate(AI, None).points) == (0, 100)


@rows(
    "text, specific",
    *((text, False) for text in ("a, b", 7, "withdrawal")),
    *((text, True) for text in ("id, name", "items[]", "room with a view")),
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
