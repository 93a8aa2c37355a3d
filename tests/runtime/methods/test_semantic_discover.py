"""DISCOVER with criteria: candidates by meaning, then those by words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.meaning import CLINICAL, RAD
from tests.runtime.semantic.test_calls import NOTE, clinic, summarize
from tests.runtime.semantic.test_discovery import PATIENTS
from tests.service import echo, make_endpoint
from tests.stateful import StatefulBench

pytestmark = pytest.mark.anyio

WORDS = replace(make_endpoint("QUERY", "/weather", echo), description="Finds the weather forecast for a city.")


async def candidates(bench: StatefulBench, criteria: Any, **more: Any) -> list[dict[str, Any]]:
    reply = await bench.send("DISCOVER", "/", {"criteria": criteria, **more})
    assert reply.status == 200, reply.json
    found: list[dict[str, Any]] = reply.json["result"]["candidates"]
    return found


@pytest.mark.requirement("IOA-8-2")
async def test_capability_of_another_domain_is_found_first_and_can_be_called() -> None:
    async with clinic(WORDS, summarize()) as bench:
        for criteria in ("radiology-report-summary", {"capability": f"{RAD}#report-summary"}):
            first, *others = await candidates(bench, criteria)
            assert (first["path"], first["match"], first["confidence"]) == ("/note", "mapped", 0.91)
            assert "/note" not in [one["path"] for one in others]
        reply = await bench.send(first["method"], first["path"], {**NOTE, "semantic": first["semantic"]})
        assert (reply.status, reply.json) == (200, NOTE)


async def test_search_by_words_goes_on_for_everything_else() -> None:
    async with clinic(WORDS, summarize()) as bench:
        assert [one["path"] for one in await candidates(bench, "weather forecast")] == ["/weather"]
        assert await candidates(bench, "radiology-report-summary", max_results=1) != []
        assert await candidates(bench, {"goal": "zebra"}) == []
        manifest = await bench.send("DISCOVER", "/", agent=None)
        assert "endpoints" in manifest.json


@pytest.mark.requirement("IOA-13-4")
async def test_sensitive_capability_is_found_neither_by_meaning_nor_by_words() -> None:
    async with clinic(PATIENTS, sensitive=(f"{CLINICAL}#patient-lookup",)) as bench:
        assert await candidates(bench, "summarize patient") == []
        assert await candidates(bench, "patient lookup") == []
        doctor = await bench.send("DISCOVER", "/", {"criteria": "patient lookup"}, authority_scope="patients:read")
        assert doctor.json["result"]["candidates"][0]["path"] == "/patient"


async def test_filter_holds_for_candidates_by_meaning() -> None:
    async with clinic(summarize()) as bench:
        wanted = {"capability": f"{CLINICAL}#note-summarize"}
        assert len(await candidates(bench, wanted)) == 1
        assert await candidates(bench, wanted, filter={"principal": "somebody else"}) == []
