"""The score of a live host: what costs points, and that what it says would raise it does."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.agent.discovery.live import AI, AI_PATH, OPENAPI_PATH, SUMMARY, SUMMARY_PATH, check, host, served
from tests.agent.discovery.web import Script, always, server_tls

from bespeak.agent.discovery.examination import ABSENT
from bespeak.agent.discovery.score import PARTS
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


def test_the_parts_are_a_hundred_points() -> None:
    assert sum(PARTS.values()) == 100


async def test_a_host_in_order_has_them_all_and_nothing_would_raise_it() -> None:
    score = await scored(host())
    assert (score.points, score.gains, score.rating) == (100, [], (100, "Excellent"))
    assert [(part.name, part.of) for part in score.parts] == list(PARTS.items())


@pytest.mark.parametrize(
    ("gain", "part", "pages"),
    [
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
    ],
)
async def test_finding_costs_points_in_its_part(gain: float, part: str, pages: dict[str, Any] | None) -> None:
    score = await scored(host(pages), tls=pages is not None)
    assert (gain, part) in [(round(each.points, 2), each.part) for each in score.gains]
    assert score.points < 100


@pytest.mark.parametrize(
    "script",
    [
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
    ],
)
async def test_the_points_and_what_would_raise_them_are_a_hundred_together(script: Script) -> None:
    score = await scored(script)
    whole = sum(part.points for part in score.parts) + sum(gain.points for gain in score.gains)
    assert math.isclose(whole, 100)
    assert all(0 <= part.points <= part.of for part in score.parts)
    assert [gain.points for gain in score.gains] == sorted((gain.points for gain in score.gains), reverse=True)


async def test_without_a_document_there_are_hardly_any_points() -> None:
    assert (await scored(always(404))).points < 20
    assert (await scored(HTML)).points < 20


async def test_a_bad_certificate_leaves_nothing_to_score() -> None:
    score = await scored(host(), tls=server_tls("other.test"))
    assert score.points < 10
    assert score.rating is None


async def test_json_is_rated_whatever_its_media_type_as_the_platform_does() -> None:
    score = await scored(host({AI_PATH: served(AI, Content_Type="text/html")}))
    assert score.rating == (100, "Excellent")


async def test_host_without_a_document_has_no_rating_because_the_platform_reads_the_alias_too() -> None:
    alias_only = {AI_PATH: always(404), "/ai": served(AI)}
    assert (await scored(host(alias_only))).rating is None
    assert (await scored(host(alias_only), path="/ai")).rating == (100, "Excellent")


async def test_making_up_for_a_gain_brings_its_points() -> None:
    worse = {AI_PATH: served({**AI, "meta": {}}, Cache_Control="", ETag="")}
    better = {AI_PATH: served({**AI, "meta": {}}, ETag="")}
    before, after = await scored(host(worse)), await scored(host(better))
    gain = next(gain for gain in before.gains if "W919" in gain.rules)
    assert after.points - before.points == gain.points == 4


async def test_findings_of_other_documents_do_not_count_as_those_of_the_first() -> None:
    score = await scored(host({"/llms.txt": served(b"# Flights", Cache_Control="", ETag="")}))
    assert score.points == 100
