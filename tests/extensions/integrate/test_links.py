"""LINK and EMBED (Tier 2 6.2, 6.7): FETCH shows what belongs to a thing, as its reader may read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.extensions.acquire.test_collections import manifest, put
from tests.extensions.acquire.test_methods import call, code, good
from tests.messaging import BOB
from tests.service import AGENT, make_endpoint
from tests.state.store.conftest import place
from tests.stateful import StatefulBench, audited_backend, keeping
from tests.things import Contract, joining

from bespeak import App, Unknown
from bespeak.contract.handler import Refusal
from bespeak.extensions.integrate import links
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place"]


def declare(app: App) -> None:
    """Declare an entity type, and bookings that the service knows."""
    app.entity("contract", model=Contract)

    @app.checks("booking")
    def booking(target: str) -> dict[str, Any]:
        if target != "77":
            raise Unknown
        return {"status": "paid"}


METHODS = ("LINK", "EMBED", "IMPORT", "FETCH", "REGISTER", "CANCEL", "CHECK", "TRANSFER")
SERVICE = {"methods": METHODS, "participants": joining(declare)}


async def register(bench: StatefulBench, title: str, agent: str = AGENT) -> str:
    body = {"entity_type": "contract", "data": {"title": title}}
    entity_id: str = (await bench.send("REGISTER", "/", body, agent=agent)).json["result"]["entity_id"]
    return entity_id


@pytest.mark.requirement("METHODS-6.2-3", "METHODS-6.2-4", "METHODS-6.2-5")
async def test_a_link_is_shown_with_both_of_its_ends_until_it_is_cancelled(place: str) -> None:
    store = open_store(place, role="sole")
    try:
        async with keeping(**SERVICE, store=store) as bench:
            await put(store, {"id": "k1", "title": "First"})
            entity = await register(bench, "Lease")
            given = {"source": "papers/k1", "target": entity, "relationship": "proves"}
            made = await good(bench, "LINK", **given, metadata={"page": 3})
            resource = made["source"]
            found = await good(bench, "FETCH", resource_id="papers/k1", follow="proves")
            told = {"link_id": made["link_id"], "relationship": "proves", "metadata": {"page": 3}, "readable": True}
            content = {"title": "Lease", "pages": 1}
            assert found["links"] == [{**told, "direction": "outgoing", "other": entity, "content": content}]
            found = await good(bench, "FETCH", resource_id=entity)
            assert found["links"] == [{**told, "direction": "incoming", "other": resource}]
            again = await call(bench, "LINK", **{**given, "source": resource})
            assert (again.refusal, again.error["link_id"]) == ((409, "already-linked"), made["link_id"])
            assert (await good(bench, "CHECK", target=made["link_id"]))["details"]["target"] == entity
            assert await code(bench, "CANCEL", agent=BOB, target_id=made["link_id"]) == (404, "target-not-found")
            await good(bench, "CANCEL", target_id=made["link_id"])
            assert "links" not in await good(bench, "FETCH", resource_id=entity)
            made = await good(bench, "LINK", **given)
            await good(bench, "CANCEL", target_id=entity)
            assert "links" not in await good(bench, "FETCH", resource_id=resource)
            assert await code(bench, "CANCEL", target_id=made["link_id"]) == (409, "already-cancelled")
            made = await good(
                bench, "LINK", source="papers/k1", target=await register(bench, "Deed"), relationship="by"
            )
            await good(bench, "CANCEL", target_id="resources:papers")
            assert "links" not in await good(bench, "FETCH", resource_id=made["target"])
    finally:
        await store.close()


@pytest.mark.requirement("METHODS-6.2-7", "METHODS-6.2-8")
async def test_only_readable_things_are_linked_and_only_links_between_readable_things_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path)) as bench:
        await put(bench.store, {"id": "k1"})
        await put(bench.store, {"id": "b1"}, owner=BOB)
        mine, other = await register(bench, "Lease"), await register(bench, "Other", BOB)
        for target in ("papers/k1", "booking:77", AGENT, "ledger/4"):
            await good(bench, "LINK", source=mine, target=target, relationship="about")
        refused: list[tuple[str, str, tuple[int, str]]] = [
            (mine, other, (404, "thing-not-found")),
            (other, mine, (404, "thing-not-found")),
            (mine, "booking:78", (404, "thing-not-found")),
            (mine, "papers/b1", (404, "thing-not-found")),
            ("ledger/4", mine, (404, "thing-not-found")),
            (mine, "77", (409, "already-linked")),
            (mine, mine, (422, "invalid-target")),
        ]
        for source, target, expected in refused:
            given = {"source": source, "target": target, "relationship": "about"}
            assert await code(bench, "LINK", **given) == expected, (source, target)
        reads = {"agent": BOB, "authority": "contract:read"}
        seen = await good(bench, "FETCH", resource_id=mine, **reads, follow=["about"])
        assert [one["other"] for one in seen["links"]] == ["booking:77", "ledger/4"]
        assert seen["links"][0]["content"] == {"status": "paid"}
        monkeypatch.setattr(links, "_MOST_OF_THING", 4)
        given = {"source": mine, "target": "papers/k1", "relationship": "of"}
        assert await code(bench, "LINK", **given) == (409, "too-many-links")
        other = {"source": BOB, "target": mine, "relationship": "knows", "agent": BOB, "authority": "contract:read"}
        assert await code(bench, "LINK", **other) == (200, "")  # the links of each owner are counted apart
        await good(bench, "LINK", source="ledger/4", target="papers/k1", relationship="pays", authority="ledger:link")


@pytest.mark.requirement("METHODS-6.7-3", "METHODS-6.7-4", "METHODS-6.7-5")
async def test_a_component_is_shown_inside_of_its_target_in_the_version_asked_for(place: str) -> None:
    rated: list[Any] = []

    def rate(given: dict[str, Any]) -> dict[str, Any]:
        rated.append(given)
        if given.get("amount") == 0:
            raise Refusal("no-amount", "There is nothing to rate.")
        return {"score": given["amount"] / 2}

    number = {"amount": {"type": "number"}}
    score = make_endpoint("RANK", "/risk", rate, properties=number, errors={"no-amount": "Nothing."})
    store = open_store(place, role="sole")
    try:
        async with keeping(score, **SERVICE, store=store) as bench:
            await put(store, {"id": "k1", "amount": 8}, {"id": "k2", "amount": 0}, collection="loans")
            await put(store, {"id": "n", "text": "old"}, collection="notes")
            note = await good(bench, "EMBED", source="notes/n", target="loans/k1", binding="note", version=1)
            assert (note["version"], note["reference"]) == (1, f"{note['target']}#/note")
            await good(bench, "EMBED", source="RANK /risk", target="loans", binding="risk")
            await good(bench, "EMBED", source="notes", target="loans/k1")
            await put(store, {"id": "n", "text": "new"}, collection="notes")
            found = await good(bench, "FETCH", resource_id="loans/k1", if_modified_since="2100-01-01T00:00:00Z")
            row = found["content"]
            assert (row["note"], row["risk"]) == ({"id": "n", "text": "old"}, {"score": 4.0})
            assert [one["text"] for one in row["notes"]] == ["new"]
            assert {one["binding"] for one in found["embedded"] if one["status"] == "shown"} == {
                "note",
                "notes",
                "risk",
            }
            found = await good(bench, "FETCH", resource_id="loans/k2")
            assert found["content"]["risk"] == {"error": {"code": "no-amount", "message": "There is nothing to rate."}}
            assert rated == [{"amount": 8}, {"amount": 0}]
            await good(bench, "CANCEL", target_id=note["embed_id"])
            assert "note" not in (await good(bench, "FETCH", resource_id="loans/k1"))["content"]
            taken = await call(bench, "EMBED", source="notes/n", target="loans", binding="risk")
            assert taken.refusal == (409, "binding-taken")
    finally:
        await store.close()


async def test_nobody_reads_a_component_that_it_could_not_read_alone() -> None:
    secret = make_endpoint("RANK", "/risk", lambda _: {"score": 1}, scopes=("risk:read",))
    async with keeping(secret, **SERVICE) as bench:
        await put(bench.store, {"id": "k1"}, collection="loans")
        await put(bench.store, {"id": "n"}, collection="notes")
        refused = await code(bench, "EMBED", source="RANK /risk", target="loans/k1")
        assert refused == (404, "source-not-found")
        await good(bench, "EMBED", source="RANK /risk", target="loans/k1", authority="risk:read")
        await good(bench, "EMBED", source="notes/n", target="loans/k1", binding="note")
        found = await good(bench, "FETCH", resource_id="res-1", agent=BOB, authority="loans:read")
        assert found["content"] == {"id": "k1"}
        assert {one["binding"]: one["status"] for one in found["embedded"]} == {"risk": "withheld", "note": "withheld"}
        assert all("source" not in one for one in found["embedded"])
        both = "loans:read,notes:read,risk:read"
        found = await good(bench, "FETCH", resource_id="res-1", agent=BOB, authority=both)
        assert (found["content"]["risk"], found["content"]["note"]) == ({"score": 1}, {"id": "n"})


async def test_a_new_owner_does_not_get_the_components_of_the_former_one() -> None:
    async with keeping(**SERVICE) as bench:
        await put(bench.store, {"id": "n"}, collection="notes")
        entity = await register(bench, "Lease")
        made = await good(bench, "EMBED", source="notes/n", target=entity, binding="note")
        assert (await good(bench, "FETCH", resource_id=entity))["content"]["note"] == {"id": "n"}
        given = {"resource_id": entity, "from_principal": AGENT, "to_principal": BOB, "authority": "contract:transfer"}
        await good(bench, "TRANSFER", **given)
        both = {"agent": BOB, "authority": "notes:read"}
        assert "note" not in (await good(bench, "FETCH", resource_id=entity, **both))["content"]
        await good(bench, "EMBED", source="res-1", target=entity, binding="note", **both)
        assert (await good(bench, "FETCH", resource_id=entity, **both))["content"]["note"] == {"id": "n"}
        await good(bench, "CANCEL", target_id=made["embed_id"])


async def test_a_model_predicts_from_the_row_that_it_is_embedded_in() -> None:
    def offer(app: App) -> None:
        @app.model("risk", scopes=["risk:read"])
        def rate(amount: float) -> float:
            return amount / 2

    async with keeping(methods=(*METHODS, "PREDICT"), participants=joining(offer)) as bench:
        await put(bench.store, {"id": "k1", "amount": 8}, {"id": "k2", "amount": "x"}, collection="loans")
        given = {"source": "model:risk", "target": "loans"}
        assert await code(bench, "EMBED", **given) == (404, "source-not-found")
        assert (await good(bench, "EMBED", **given, authority="risk:read"))["binding"] == "model_risk"
        found = await good(bench, "FETCH", resource_id="loans/k1", authority="risk:read")
        assert found["content"]["model_risk"] == {"value": 4.0}
        assert "model_risk" not in (await good(bench, "FETCH", resource_id="loans/k1"))["content"]
        found = await good(bench, "FETCH", resource_id="loans/k2", authority="risk:read")
        assert found["embedded"][0]["status"] == "failed"


@pytest.mark.requirement("METHODS-6.7-7", "METHODS-6.7-8", "METHODS-6.7-9")
async def test_what_cannot_be_embedded_is_refused_and_nothing_contains_itself() -> None:
    book = make_endpoint("BOOK", "/room", lambda _: {}, impact="reversible")
    async with keeping(book, **SERVICE) as bench:
        await put(bench.store, {"id": "a"}, {"id": "b"}, {"id": "c"})
        await put(bench.store, {"id": "x"}, owner=BOB)
        await good(bench, "EMBED", source="papers/a", target="papers/b", binding="part")
        await good(bench, "EMBED", source="papers/b", target="papers/c", binding="part")
        refused: list[tuple[dict[str, Any], tuple[int, str]]] = [
            ({"source": "papers/c"}, (409, "embed-cycle")),
            ({"source": "papers/a"}, (409, "embed-cycle")),
            ({"source": "papers/b", "target": "papers"}, (409, "embed-cycle")),
            ({"source": "papers", "target": "papers"}, (409, "embed-cycle")),
            ({"source": "papers/a", "target": "papers/b", "binding": "part"}, (409, "binding-taken")),
            ({"source": "papers/a", "target": "papers/b", "binding": "id"}, (409, "binding-taken")),
            ({"source": "BOOK /room"}, (400, "not-embeddable")),
            ({"source": "FETCH /"}, (400, "not-embeddable")),
            ({"source": "RANK /nowhere"}, (404, "source-not-found")),
            ({"source": "papers/b", "version": 9}, (404, "version-not-found")),
            ({"source": "papers/x"}, (404, "source-not-found")),
            ({"target": "res-4"}, (404, "target-not-found")),
            ({"target": "nothing"}, (404, "target-not-found")),
        ]
        for change, expected in refused:
            given = {"source": "papers/b", "target": "papers/a", **change}
            assert await code(bench, "EMBED", **given) == expected, change
