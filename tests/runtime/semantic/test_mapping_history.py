"""What comes of mapped calls is counted, and stored with the next batch."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.meaning import CLINICAL, CLINICAL_PROFILE, RAD, RAD_PROFILE, register_all
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.errors import StoreUnavailableError
from bespeak.runtime.semantic import calls
from bespeak.runtime.semantic.calls import MappingHistory
from bespeak.state.store.commands.semantics import ListMappedCalls, MappedCalls
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

SUMMARY = (f"{RAD}#report-summary", f"{CLINICAL}#note-summarize")


def summarize(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    """Fail if the note says so."""
    if input["text"] == "fail":
        raise ValueError("broken")
    return {}


def endpoint() -> Endpoint:
    made = make_endpoint("SUMMARIZE", "/note", summarize, properties={"text": {"type": "string"}}, impact="reversible")
    return replace(made, semantic=replace(made.semantic, concepts=(SUMMARY[1],)))


@asynccontextmanager
async def opened(place: str) -> AsyncIterator[Store]:
    store = open_store(place, role="sole")
    await store.start()
    yield store
    await store.close()


@pytest.fixture
async def place(tmp_path: Path) -> str:
    place = str(tmp_path / "store.db")
    async with opened(place) as store:
        await register_all(store)
    return place


@asynccontextmanager
async def clinic(place: str) -> AsyncIterator[StatefulBench]:
    async with keeping(endpoint(), store=open_store(place, role="sole"), semantic=SemanticSettings()) as bench:
        yield bench


async def call(bench: StatefulBench, text: Any = "", profile: Any = RAD_PROFILE, **headers: Any) -> int:
    reply = await bench.send("SUMMARIZE", "/note", {"text": text, "semantic": profile}, **headers)
    return reply.status


async def read(store: Store) -> dict[tuple[str, str], tuple[int, int]]:
    rows: list[MappedCalls] = await store.read(ListMappedCalls())
    return {(row.source, row.target): (row.succeeded, row.failed) for row in rows}


async def stored(place: str) -> dict[tuple[str, str], tuple[int, int]]:
    async with opened(place) as store:
        return await read(store)


async def test_successes_and_failures_of_mapped_calls_are_stored_when_the_server_ends(place: str) -> None:
    async with clinic(place) as bench:
        assert [await call(bench, text) for text in ("a", "b", "fail")] == [200, 200, 500]
        assert await call(bench, profile=CLINICAL_PROFILE) == 200
        assert await read(bench.store) == {}, "calls do not wait for a transaction of their own"
    counts = await stored(place)
    assert counts[SUMMARY] == (2, 1)
    assert set(counts.values()) == {(2, 1)}
    async with clinic(place) as bench:
        assert await call(bench) == 200
    assert (await stored(place))[SUMMARY] == (3, 1)


async def test_repeated_answers_and_refusals_do_not_count(place: str) -> None:
    async with clinic(place) as bench:
        for _ in range(3):
            assert await call(bench, idempotency_key="once") == 200
        assert await call(bench, "other", idempotency_key="once") == 422
        assert await call(bench, 7) == 422
    assert (await stored(place))[SUMMARY] == (1, 0)


async def test_counts_are_stored_after_a_period_and_counting_goes_on(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PERIOD", 0.0)
    async with clinic(place) as bench:
        for number in (1, 2):
            await call(bench)
            history: MappingHistory = bench.bench.dispatcher.server.semantic.history
            assert history._flushing is not None
            await history._flushing
            assert (await read(bench.store))[SUMMARY] == (number, 0)


async def test_number_of_mappings_in_a_period_is_bounded(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_MAPPINGS", 1)
    async with clinic(place) as bench:
        await call(bench)
    assert len(await stored(place)) == 1
    monkeypatch.setattr(calls, "LONGEST", 5)
    async with clinic(place) as bench:
        await call(bench)
    assert sum(sum(two) for two in (await stored(place)).values()) == 1


async def test_store_that_fails_costs_only_the_counts(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> Any:
        raise StoreUnavailableError("gone")

    async with clinic(place) as bench:
        assert await call(bench) == 200
        with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
            patched.setattr(bench.store, "do", fail)
            await bench.bench.dispatcher.server.semantic.history.flush()
        assert "could not be stored: gone" in caplog.text
    assert await stored(place) == {}
