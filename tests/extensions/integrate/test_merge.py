"""MERGE (Tier 2 6.1): what sources agree on is kept, and each conflict is told with its values and the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.extensions.acquire.test_collections import manifest
from tests.extensions.acquire.test_methods import call, code, good
from tests.messaging import BOB
from tests.state.store.conftest import place
from tests.stateful import audited_backend, keeping
from tests.things import contracts, joining

from bespeak.extensions.integrate import merge
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Statement, Steps

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place"]
SERVICE = {"methods": ("MERGE", "IMPORT", "FETCH", "SCAN", "REGISTER"), "participants": joining(contracts)}
NORTH = [{"id": 1, "name": "Ann", "phone": "1"}, {"id": 2, "name": "Bob", "phone": None}]
SOUTH = [{"id": 2, "name": "Bob", "phone": "22"}, {"id": 1, "name": "Anna", "city": "Oslo"}, {"id": 3, "name": "Cem"}]


@pytest.mark.requirement("METHODS-6.1-2", "METHODS-6.1-3", "METHODS-6.1-4")
async def test_rows_with_a_key_become_one_and_the_policy_of_each_field_decides_conflicts() -> None:
    async with keeping(**SERVICE) as bench:
        given: dict[str, Any] = {"sources": [NORTH, SOUTH], "key": "id"}
        told = await good(bench, "MERGE", **given, conflict_resolution={"name": "longest"})
        first = {"id": 1, "name": "Anna", "phone": "1", "city": "Oslo"}
        assert told["merged"] == [first, {"id": 2, "name": "Bob", "phone": "22"}, {"id": 3, "name": "Cem"}]
        values = [{"source": "sources/0", "value": "Ann"}, {"source": "sources/1", "value": "Anna"}]
        chosen = {"chosen": "Anna", "from": "sources/1", "by": "longest"}
        assert told["conflicts"] == [{"key": {"id": 1}, "field": "name", "values": values, **chosen}]
        told = await good(bench, "MERGE", **given, conflict_resolution="first", strategy="intersection")
        assert [one["name"] for one in told["merged"]] == ["Ann", "Bob"]
        told = await good(bench, "MERGE", **given, conflict_resolution={"*": "last", "phone": "first"})
        assert told["merged"][0]["name"] == "Anna"


@pytest.mark.requirement("METHODS-6.1-2", "METHODS-6.1-7", "METHODS-6.1-8")
async def test_a_conflict_without_a_policy_is_409_with_the_report_and_manual_leaves_it_open() -> None:
    async with keeping(**SERVICE) as bench:
        given: dict[str, Any] = {"sources": [NORTH, SOUTH], "key": "id"}
        refused = await call(bench, "MERGE", **given)
        assert refused.refusal == (409, "merge-conflict")
        assert [one["field"] for one in refused.error["conflicts"]] == ["name"]
        told = await good(bench, "MERGE", **given, strategy="manual", conflict_resolution="first")
        assert (told["unresolved"], told["merged"][0]) == (1, {"id": 1, "phone": "1", "city": "Oslo"})
        assert "chosen" not in told["conflicts"][0]
        assert await code(bench, "MERGE", **given, strategy="manual", into="all") == (409, "merge-conflict")
        wrong: list[tuple[dict[str, Any], tuple[int, str]]] = [
            ({"sources": [[1], []]}, (422, "invalid-sources")),
            ({"key": "phone"}, (422, "invalid-sources")),
            ({"sources": [NORTH, "nothing"]}, (404, "collection-not-found")),
            ({"sources": [NORTH, {"collection": 7}]}, (422, "invalid-sources")),
            ({"conflict_resolution": "longest", "sources": [[{"id": 1, "n": 1}], [{"id": 1, "n": 2}]]},
             (409, "merge-conflict")),
            ({"base": NORTH, "strategy": "intersection"}, (422, "invalid-strategy")),
            ({"into": "contract", "conflict_resolution": "first"}, (409, "name-taken")),
        ]  # fmt: skip
        for change, expected in wrong:
            assert await code(bench, "MERGE", **{**given, **change}) == expected, change
        assert await code(bench, "SCAN", collection="all") == (404, "collection-not-found")


@pytest.mark.requirement("METHODS-6.1-3")
async def test_the_latest_value_wins_by_a_named_time_or_by_that_of_the_resource(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path)) as bench:
        one, two = {"id": 1, "n": 1, "at": "2026-01-02T00:00:00Z"}, {"id": 1, "n": 2, "at": "2026-01-01T00:00:00Z"}
        given: dict[str, Any] = {"sources": [[one], [two]], "key": "id", "strategy": "latest"}
        assert (await good(bench, "MERGE", **given, time="at"))["merged"] == [one]
        refused = await call(bench, "MERGE", **given)
        assert "times" in refused.error["conflicts"][0]["unresolved"]
        await good(bench, "IMPORT", source=[{"id": 1, "n": "new"}], target="north", key="id")
        await good(bench, "IMPORT", source=[{"id": 1, "n": "newer"}], target="south", key="id")
        await bench.store.do(Age("north"))
        for sources in (["north", "south"], ["south/1", "north/1"], [{"collection": "south"}, "north/1"]):
            told = await good(bench, "MERGE", sources=sources, key="id", strategy="latest")
            found = told["merged"][0] if isinstance(told["merged"], list) else told["merged"]
            assert found == {"id": 1, "n": "newer"}, sources
        both = await good(bench, "MERGE", sources=["ledger", [{"id": 1, "memo": "x"}]], key="id",
                          conflict_resolution="last")  # fmt: skip
        assert both["merged"][0]["memo"] == "x"


class Age(Command, frozen=True):
    """Let the resources of a collection be older."""

    collection: str

    def steps(self) -> Steps:
        yield Statement("UPDATE resources SET updated = updated - 60 WHERE collection = ?", (self.collection,))
        return None


async def test_with_a_base_only_changes_of_both_sides_conflict() -> None:
    async with keeping(**SERVICE) as bench:
        base = [{"id": n, "a": 0, "b": 0} for n in range(1, 6)]
        ours = [{"id": 1, "a": 1, "b": 0}, {"id": 2, "a": 1, "b": 0}, {"id": 4, "a": 0, "b": 0}, {"id": 5, "b": 0}]
        theirs = [{"id": 1, "a": 0, "b": 2}, {"id": 2, "a": 2, "b": 0}, {"id": 5, "a": 0, "b": 0}, {"id": 6}]
        given: dict[str, Any] = {"sources": [ours, theirs], "base": base, "key": "id"}
        refused = await call(bench, "MERGE", **given)
        assert [one["field"] for one in refused.error["conflicts"]] == ["a"]
        told = await good(bench, "MERGE", **given, conflict_resolution="last")
        assert told["merged"] == [{"id": 1, "a": 1, "b": 2}, {"id": 2, "a": 2, "b": 0}, {"id": 5, "b": 0}, {"id": 6}]
        assert told["removed"] == 2
        given["sources"] = [[{"id": 1, "a": 9, "b": 0}], []]
        told = await good(bench, "MERGE", **{**given, "base": base[:1]}, conflict_resolution="first")
        assert (told["merged"], told["conflicts"][0]["removed_row"]) == ([{"id": 1, "a": 9, "b": 0}], True)
        told = await good(bench, "MERGE", **{**given, "base": base[:1]}, conflict_resolution="last")
        assert (told["merged"], told["removed"]) == ([], 1)


async def test_objects_become_one_object_and_rows_without_a_key_are_equal_or_different() -> None:
    async with keeping(**SERVICE) as bench:
        told = await good(bench, "MERGE", sources=[{"a": 1}, {"b": [1]}])
        assert told["merged"] == {"a": 1, "b": [1]}
        told = await good(bench, "MERGE", sources=[[{"a": 1}, {"a": True}], [{"a": 1}]])
        assert (told["merged"], told["conflict_count"]) == ([{"a": 1}, {"a": True}], 0)


@pytest.mark.requirement("METHODS-6.1-1", "METHODS-6.1-4")
async def test_what_is_merged_into_a_collection_is_kept_in_versions_for_its_owner(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(place, role="sole")
    try:
        async with keeping(**SERVICE, store=store) as bench:
            given: dict[str, Any] = {"sources": [NORTH, SOUTH], "key": "id", "into": "customers"}
            told = await good(bench, "MERGE", **given, conflict_resolution="first")
            assert (told["added"], told["changed"]) == (3, 0)
            told = await good(bench, "MERGE", **given, conflict_resolution="last")
            assert (told["changed"], told["skipped"]) == (1, 2)
            found = await good(bench, "FETCH", resource_id="customers/1", version=1)
            assert found["content"]["name"] == "Ann"
            assert await code(bench, "SCAN", collection="customers", agent=BOB) == (404, "collection-not-found")
            assert await code(bench, "MERGE", agent=BOB, sources=["customers", NORTH]) == (404, "collection-not-found")
            both: dict[str, Any] = {**given, "key": ["id", "name"], "sources": [[{"id": 1, "name": "A"}]] * 2}
            await good(bench, "MERGE", **both)
            assert (await good(bench, "FETCH", resource_id='customers/[1,"A"]'))["content"]["id"] == 1
            monkeypatch.setattr(merge, "MOST_ROWS", 6)
            for sources in ([NORTH, SOUTH, NORTH], ["customers", SOUTH, "customers"]):
                assert (await call(bench, "MERGE", sources=sources, key="id")).status == 422, sources
            monkeypatch.setattr(merge, "MOST_PUT", 2)
            assert await code(bench, "MERGE", **given, conflict_resolution="last") == (422, "invalid-into")
    finally:
        await store.close()
