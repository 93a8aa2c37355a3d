"""Collections: one way to read data sets, entities and resources, in the authority of the caller."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.extensions.data.ledger import ROWS, data_set, shown
from tests.messaging import BOB
from tests.service import AGENT
from tests.state.store.conftest import place, shared_place, started, store
from tests.stateful import StatefulBench, keeping
from tests.things import contracts, joining

from bespeak.contract.policy import Policies
from bespeak.contract.service import DataManifest
from bespeak.extensions.acquire import store as commands
from bespeak.extensions.acquire.store import (
    CountUnindexed,
    FindVersion,
    IndexResources,
    ListResources,
    NewRow,
    PutResources,
    ReadResources,
    SearchResources,
    split_words,
)
from bespeak.extensions.data import collection as collections
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Statement, Steps, Store

pytestmark = pytest.mark.anyio
__all__ = ["place", "shared_place", "store"]
SERVICE = {"methods": ("SCAN", "REGISTER"), "participants": joining(contracts)}


def manifest(folder: Path, kind: str = "function", **more: Any) -> DataManifest:
    return DataManifest(available_data=(data_set(kind, folder, **more),))


async def scan(bench: StatefulBench, collection: str, agent: str = AGENT, **given: Any) -> Any:
    scope = given.pop("scope", "")
    headers = {"authority_scope": scope} if scope else {}
    return await bench.send("SCAN", "/", {"collection": collection, **given}, agent=agent, **headers)


async def items(bench: StatefulBench, collection: str, **given: Any) -> list[dict[str, Any]]:
    """Read a whole collection by its cursors."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        reply = await scan(bench, collection, **given, **cursor)
        assert reply.status == 200, reply.json
        found += reply.json["result"]["items"]
        if "cursor" not in reply.json["result"]:
            return found
        cursor = {"cursor": reply.json["result"]["cursor"]}


def rows(*data: dict[str, Any]) -> tuple[NewRow, ...]:
    return tuple(NewRow(one.get("id"), msgspec.json.encode(one).decode()) for one in data)


async def put(kept: Store, *data: dict[str, Any], collection: str = "papers", owner: str = AGENT, **more: Any) -> Any:
    done = await kept.do(PutResources(collection, owner, rows(*data), more.pop("policy", "overwrite"), **more))
    assert isinstance(done, list | tuple), done
    return done[0]


@pytest.mark.requirement("METHODS-3.3-1", "METHODS-3.3-2", "METHODS-3.3-4")
@pytest.mark.parametrize("kind", ["function", "csv", "sqlite"])
async def test_scan_returns_every_row_of_a_data_set_once_and_only_those_of_the_filter(
    kind: str, tmp_path: Path
) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, kind)) as bench:
        found = await items(bench, "ledger", page_size=4)
        assert [shown(row) for row in found] == [shown(row) for row in ROWS]
        found = await items(bench, "ledger", page_size=1, filter={"account": "a-1", "amount": {"min": 0, "max": 50}})
        assert [row["id"] for row in found] == [1, 4]
        wrong = await scan(bench, "ledger", filter={"amount": {"min": "0; DROP TABLE ledger"}})
        assert (wrong.status, wrong.json["error"]["code"]) == (422, "invalid-filter")
        assert (await scan(bench, "moons")).status == 404
        wrong = await scan(bench, "ledger", filter={"salary": 1})
        assert "ledger has id, account" in wrong.json["error"]["message"]


async def test_a_collection_that_the_caller_may_not_read_does_not_exist_for_it(tmp_path: Path) -> None:
    secret = manifest(tmp_path, sensitivity="high")
    async with keeping(**SERVICE, data_manifest=secret) as bench:
        refused = await scan(bench, "ledger", scope="other:read")
        assert (refused.status, refused.json["error"]["code"]) == (404, "collection-not-found")
        assert refused.json["error"]["collections"] == ["contract"]
        assert len(await items(bench, "ledger", scope="data:ledger")) == len(ROWS)


async def test_core_methods_show_no_data_set_to_callers_whom_its_endpoint_would_refuse(tmp_path: Path) -> None:
    policies = Policies(scope_required_for_invocation=True)
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path), policies=policies) as bench:
        asked = {"intent": "a-1"}
        for agent in (None, AGENT):
            reply = await bench.send("QUERY", "/", asked, agent=agent)
            assert "ledger" not in reply.json["result"].get("searched", ())
            told = await bench.send("SUMMARIZE", "/", {"source": "ledger"}, agent=agent)
            assert "collection" not in told.json["result"]  # it is a text
            assert (await bench.send("QUERY", "/", {**asked, "scope": ["ledger"]}, agent=agent)).status != 200
        reply = await bench.send("QUERY", "/", {**asked, "scope": ["ledger"]}, authority_scope="desk:use")
        assert reply.json["result"]["searched"] == ["ledger"]


async def test_entities_are_a_collection_of_their_owner_and_of_readers_of_the_type() -> None:
    async with keeping(**SERVICE) as bench:
        for agent, title in ((AGENT, "Lease"), (AGENT, "Sale"), (BOB, "Will")):
            body = {"entity_type": "contract", "data": {"title": title}}
            assert (await bench.send("REGISTER", "/", body, agent=agent)).status == 200

        async def titles(name: str, **given: Any) -> list[str]:
            return sorted(row["title"] for row in await items(bench, name, **given))

        assert await titles("contract", page_size=1) == ["Lease", "Sale"]
        assert await titles("entities:contract", agent=BOB) == ["Will"]
        everything = await titles("contract", scope="contract:read", filter={"pages": {"max": 1}})
        assert everything == ["Lease", "Sale", "Will"]


async def test_a_cursor_of_another_agent_or_another_filter_is_refused() -> None:
    async with keeping(**SERVICE) as bench:
        await put(bench.store, {"id": "1"}, {"id": "2"}, {"id": "3"})
        cursor = (await scan(bench, "papers", page_size=2)).json["result"]["cursor"]
        changes: list[dict[str, Any]] = [{"agent": BOB, "scope": "papers:read"}, {"filter": {"id": "1"}}]
        for change in changes:
            refused = await scan(bench, "papers", page_size=2, cursor=cursor, **change)
            assert (refused.status, refused.json["error"]["code"]) == (400, "invalid-cursor")
        for text in ("", "x", cursor[:-2], "W10", "\x00"):
            assert (await scan(bench, "papers", cursor=text)).status in (400, 422)


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
async def test_a_cursor_that_was_forged_is_refused(kind: str, tmp_path: Path) -> None:
    positions: list[list[Any]] = [[], ["abc"], [None], [1e308], [-1], [1 << 63], ["\0", "\0"], [True], [1.5, "\0"]]
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, kind)) as bench:
        await put(bench.store, {"id": "1"}, {"id": "2"})
        for _ in range(2):
            body = {"entity_type": "contract", "data": {"title": "Lease"}}
            assert (await bench.send("REGISTER", "/", body)).status == 200
        for name in ("papers", "contract", "ledger"):
            cursor = (await scan(bench, name, page_size=1)).json["result"]["cursor"]
            digest, _ = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=="))
            for position in positions:
                forged = base64.urlsafe_b64encode(msgspec.json.encode([digest, position])).decode()
                reply = await scan(bench, name, cursor=forged)
                assert reply.status == 400 or (name == "ledger" and reply.status == 200), (name, position, reply.json)


async def test_what_others_import_under_the_name_of_a_data_set_is_not_shown_to_its_readers(tmp_path: Path) -> None:
    secret = manifest(tmp_path, sensitivity="high", scopes=("ledger:read",))
    service = {**SERVICE, "methods": ("SCAN", "FETCH")}
    async with keeping(**service, data_manifest=secret) as bench:
        await put(bench.store, {"id": "1"}, collection="ledger", owner=BOB)
        assert len(await items(bench, "resources:ledger", agent=BOB)) == 1
        assert (await scan(bench, "resources:ledger", scope="ledger:read")).status == 404
        assert len(await items(bench, "data:ledger", scope="ledger:read")) == len(ROWS)
        fetched = await bench.send("FETCH", "/", {"resource_id": "res-1"}, authority_scope="ledger:read")
        assert fetched.status == 404


async def test_rows_that_are_too_large_together_or_named_without_end_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collections, "_MOST_BYTES", 1 << 20)
    async with keeping(methods=("SEARCH",)) as bench:
        await put(bench.store, *({"id": str(number), "text": "x" * 60_000} for number in range(20)))
        for given in ({"query": {}, "sort": "id"}, {"query": {"a." * 200: 1}}):
            reply = await bench.send("SEARCH", "/", {"scope": "papers", **given})
            assert reply.status == 422, reply.json
            shown = reply.json["error"]["message"]
            assert "More than 1 MiB of rows of papers" in shown or "at most 256" in shown


async def test_a_page_of_large_rows_has_fewer_of_them_and_leads_to_the_next() -> None:
    service = {**SERVICE, "methods": ("SCAN", "REGISTER", "SEARCH")}
    async with keeping(**service) as bench:
        texts = [60_000, 10, 60_000, 3_000] * 10
        await put(bench.store, *({"id": str(n), "text": f"sea {'x' * texts[n]}"} for n in range(40)))
        for n in range(20):
            body = {"entity_type": "contract", "data": {"title": f"{n} {'x' * 60_000}"}}
            assert (await bench.send("REGISTER", "/", body)).status == 200
        expected = [str(n) for n in range(40)]
        assert [row["id"] for row in await items(bench, "papers")] == expected
        titles = [row["title"].split()[0] for row in await items(bench, "contract")]
        assert sorted(titles, key=int) == expected[:20]
        pages = [await scan(bench, "papers"), await scan(bench, "contract")]
        assert all(200_000 < len(page.response.body) < 1_100_000 for page in pages)
        found: list[str] = []
        offset: int | None = 0
        while offset is not None:
            reply = await bench.send("SEARCH", "/", {"query": "sea", "scope": "papers", "limit": 30, "offset": offset})
            assert len(reply.response.body) < 1_100_000
            found += [one["item"]["id"] for one in reply.json["result"]["results"]]
            offset = reply.json["result"].get("next_offset")
        assert sorted(found, key=int) == expected


@pytest.mark.requirement("METHODS-3.3-3")
async def test_a_row_that_stays_is_scanned_exactly_once_while_others_are_written() -> None:
    async with keeping(**SERVICE) as bench:
        await put(bench.store, *({"id": str(number), "n": number} for number in range(6)))
        first = (await scan(bench, "papers", page_size=3)).json["result"]
        await put(bench.store, {"id": "0", "n": 100}, {"id": "4", "n": 104}, {"id": "new", "n": 7})
        second = (await scan(bench, "papers", page_size=9, cursor=first["cursor"])).json["result"]["items"]
        assert [row["id"] for row in (*first["items"], *second)] == ["0", "1", "2", "3", "4", "5", "new"]


async def test_a_name_that_no_store_can_look_for_is_one_that_is_not_there(place: str) -> None:
    kept = open_store(place, role="sole")
    async with keeping(store=kept, methods=("MERGE",)) as bench:
        reply = await bench.send("MERGE", "/", {"sources": ["a\0b/c", [{"n": 1}]]})
    await kept.close()
    assert (reply.status, reply.json["error"]["code"]) == (404, "collection-not-found")


async def test_policies_decide_what_becomes_of_a_row_whose_key_is_there(store: Store) -> None:
    assert msgspec.to_builtins(await put(store, {"id": "1", "a": 1}, {"id": "2"}, {"a": 3})) == {
        "added": 3,
        "changed": 0,
        "skipped": 0,
    }
    assert (await put(store, {"id": "1", "b": 2}, policy="skip")).skipped == 1
    assert (await put(store, {"id": "1", "b": 2}, {"id": "1", "c": 3}, policy="merge")).changed == 2
    first = (await store.read(ListResources("papers", (AGENT,), 0, 1)))[0].position
    earlier = await store.read(FindVersion(first, 1))
    assert msgspec.json.decode(earlier.data) == {"id": "1", "a": 1}
    assert (await put(store, {"id": "1", "a": 1}, owner=BOB)).added == 1


async def test_words_find_resources_of_one_collection_and_of_the_readable_owners(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def search(text: str, *owners: str, collection: str = "papers") -> list[str]:
        found = await store.read(SearchResources(collection, owners, split_words(text)))
        rows = await store.read(ReadResources(tuple(one.position for one in found)))
        return sorted(msgspec.json.decode(row.data)["title"] for row in rows)

    await put(store, {"title": "A house by the sea"}, {"title": "Sea, sea!", "by": {"name": "Ann-Marie O'Hara"}})
    await put(store, {"title": "The sea of others"}, owner=BOB)
    await put(store, {"title": "sea"}, collection="songs")
    assert await search("SEA", AGENT) == ["A house by the sea", "Sea, sea!"]
    everything = ["A house by the sea", "Sea, sea!", "The sea of others"]
    assert await search("sea") == await search("sea", AGENT, BOB) == everything
    assert await search('marie o"hara* OR NOT', AGENT) == []
    assert await search("o'hara marie", AGENT) == ["Sea, sea!"]
    monkeypatch.setattr(commands, "MOST_INDEXED", 0)
    await put(store, {"title": "pending sea"})
    assert (await search("pending"), await store.read(CountUnindexed())) == ([], 1)
    assert (await store.do(IndexResources(10)))[0] == 1  # type: ignore[index]
    assert await search("pending") == ["pending sea"]


async def test_ranked_matches_are_bounded_and_complete_if_there_are_fewer_however_common_the_word(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_LARGE", 0), ("_RUN", 1), ("_SAMPLES", (16, 4)), ("MOST_CANDIDATES", 8)):
        monkeypatch.setattr(commands, name, value)
    for owner in (AGENT, BOB):
        each = ({"all": "sea", **{f"of{n}": f"w{n}" for n in (4, 20, 40) if at % n == 0}} for at in range(200))
        await put(store, *each, owner=owner)

    async def count(*words: str, owners: tuple[str, ...] = (AGENT,)) -> int:
        return len(set(await store.read(SearchResources("papers", owners, words))))

    assert [await count(one) for one in ("sea", "w4", "w20", "w40")] == [8, 8, 8, 5]
    assert await count("w40", owners=(AGENT, BOB)) == await count("w40", owners=()) == 8
    assert await count("w40", "sea") == 5
    if type(store).__name__ == "PostgresStore":
        common = await store.read(SearchResources("papers", (AGENT,), ("sea",)))
        assert all(one.position % 16 == 0 for one in common)  # it has not looked for the others


async def test_a_store_without_an_index_is_indexed_at_the_start_and_large_imports_afterwards(
    shared_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "MOST_INDEXED", 0)
    async for before in started(shared_place):
        await put(before, {"title": "sea"}, {"title": "lake"})
        await before.do(ForgetIndex())
    kept = open_store(shared_place, role="sole")
    try:
        async with keeping(**SERVICE, store=kept), asyncio.timeout(30):
            while not await kept.read(SearchResources("papers", (), ("sea",))):
                await asyncio.sleep(0)
            await put(kept, {"title": "river"})
            while not await kept.read(SearchResources("papers", (), ("river",))):
                await asyncio.sleep(0)
    finally:
        await kept.close()


class ForgetIndex(Command, frozen=True):
    """Leave a store as an import does: with resources, without an index and without knowing it."""

    def steps(self) -> Steps:
        yield Statement("DELETE FROM resources_text WHERE TRUE")
        yield Statement("DELETE FROM resources_unindexed WHERE TRUE")
        return None
