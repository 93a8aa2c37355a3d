"""IMPORT (Tier 2 6.4): rows of another system become resources that their owner reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.extensions.acquire.test_collections import manifest
from tests.extensions.acquire.test_methods import code, good
from tests.messaging import BOB
from tests.service import AGENT
from tests.state.store.conftest import place
from tests.stateful import audited_backend, keeping
from tests.things import contracts, joining

from bespeak.extensions.acquire import store as acquire_store
from bespeak.extensions.acquire.store import digest_of
from bespeak.extensions.integrate import methods
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place"]
SERVICE = {"methods": ("IMPORT", "FETCH", "SEARCH", "SCAN", "REGISTER"), "participants": joining(contracts)}
CONTACTS = "id,name,city\r\n1,Ann,Oslo\r\n2,Bob,Bergen\r\n"


@pytest.mark.requirement("METHODS-6.4-3", "METHODS-6.4-5")
async def test_rows_of_a_text_are_imported_found_and_fetched_by_their_owner_alone(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(place, role="sole")
    try:
        async with keeping(**SERVICE, store=store) as bench:
            given: dict[str, Any] = {"source": CONTACTS, "format": "csv", "target": "contacts", "key": "id"}
            told = await good(bench, "IMPORT", **given)
            assert (told["records"], told["added"], told["rejected"]) == (2, 2, [])
            found = await good(bench, "SEARCH", query="bergen", scope="contacts")
            assert [one["item"]["name"] for one in found["results"]] == ["Bob"]
            monkeypatch.setattr(acquire_store, "_LARGE", 0)  # as in a store with many resources
            found = await good(bench, "SEARCH", query="bob bergen", scope="contacts")
            assert [one["item"]["name"] for one in found["results"]] == ["Bob"]
            assert found["results"][0]["score"] > 0
            assert (await good(bench, "FETCH", resource_id="contacts/1"))["content"]["city"] == "Oslo"
            assert await code(bench, "SCAN", collection="contacts", agent=BOB) == (404, "collection-not-found")
            told = await good(bench, "IMPORT", **given, agent=BOB)
            assert told["added"] == 2
            everyone = await good(bench, "SCAN", collection="contacts", authority="contacts:read")
            assert everyone["count"] == 4
    finally:
        await store.close()


@pytest.mark.requirement("METHODS-6.4-4", "METHODS-6.4-5")
async def test_the_policy_decides_about_rows_whose_key_is_there() -> None:
    async with keeping(**SERVICE) as bench:
        first = {"source": [{"id": 1, "a": 1}], "target": "things", "key": "id"}
        await good(bench, "IMPORT", **first)
        other: dict[str, Any] = {**first, "source": [{"id": 1, "b": 2}]}
        assert (await good(bench, "IMPORT", **other, conflict_policy="skip"))["skipped"] == 1
        assert (await good(bench, "IMPORT", **other, conflict_policy="merge"))["changed"] == 1
        assert (await good(bench, "FETCH", resource_id="things/1"))["content"] == {"id": 1, "a": 1, "b": 2}
        assert (await good(bench, "IMPORT", **other))["changed"] == 1
        assert (await good(bench, "FETCH", resource_id="things/1"))["content"] == {"id": 1, "b": 2}
        assert (await good(bench, "FETCH", resource_id="things/1", version=1))["content"] == {"id": 1, "a": 1}


async def test_a_row_in_place_of_another_than_the_expected_one_is_skipped_and_its_key_told() -> None:
    async with keeping(**SERVICE) as bench:
        given: dict[str, Any] = {"target": "things", "key": "id"}
        await good(bench, "IMPORT", **given, source=[{"id": 1, "a": 1}, {"id": 2, "a": 1}])
        source = [{"id": n, "a": 2} for n in (1, 2, 3, 4)]
        expected = {"1": digest_of({"a": 1, "id": 1}), "2": digest_of({"a": 0}), "3": None}
        told = await good(bench, "IMPORT", **given, source=source, expected=expected)
        assert (told["changed"], told["added"], told["skipped"], told["stale"]) == (1, 2, 1, ["2"])
        again = await good(bench, "IMPORT", **given, source=source[2:3], expected={"3": None})
        assert again["stale"] == ["3"]
        given |= {"source": source, "expected": expected}
        refused = await bench.send("IMPORT", "/", given, prefer="respond-async")
        assert refused.refusal == (422, "invalid-expected")


@pytest.mark.requirement("METHODS-6.4-7", "METHODS-6.4-8", "METHODS-6.4-9")
async def test_what_cannot_be_imported_is_rejected_or_refused_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path)) as bench:
        rows = [{"id": 1}, 7, {"n": 2}, {"id": True}, {"id": "x" * 300}, {"id": 2, "resource_id": "res-1"}]
        told = await good(bench, "IMPORT", source=rows, target="things", key="id")
        assert (told["added"], [one["row"] for one in told["rejected"]]) == (1, [1, 2, 3, 4, 5])
        refused: list[tuple[dict[str, Any], int, str]] = [
            ({"source": "a,a\r\n1,2", "format": "csv"}, 400, "invalid-source"),
            ({"source": 'a,b\r\n1,"2', "format": "csv"}, 400, "invalid-source"),
            ({"source": "http://127.0.0.1/rows", "format": "csv"}, 400, "invalid-source"),
            ({"source": "a,b\r\n1", "format": "csv"}, 422, "nothing-to-import"),
            ({"source": '{"a": 1}'}, 422, "invalid-format"),
            ({"source": [{}], "format": "csv"}, 422, "invalid-format"),
            ({"source": [1, 2]}, 422, "nothing-to-import"),
            ({"source": [{"a": 1}], "target": "ledger"}, 409, "name-taken"),
            ({"source": [{"a": 1}], "target": "contract"}, 409, "name-taken"),
        ]
        for given, number, name in refused:
            assert await code(bench, "IMPORT", **{"target": "things", **given}) == (number, name), given
        monkeypatch.setattr(methods, "MOST_RESOURCES", 1)
        assert await code(bench, "IMPORT", source=[{"a": 1}], target="things") == (409, "too-many-resources")
        assert (await good(bench, "SCAN", collection="things"))["count"] == 1


async def test_an_import_with_a_key_that_is_repeated_is_carried_out_once() -> None:
    async with keeping(**SERVICE) as bench:
        body = {"source": [{"a": 1}], "target": "things"}
        first, again = [await bench.send("IMPORT", "/", body, agent=AGENT, idempotency_key="k-1") for _ in range(2)]
        assert (first.status, again.json) == (200, first.json)
        assert (await good(bench, "SCAN", collection="things"))["count"] == 1
