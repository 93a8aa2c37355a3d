"""MAP (Tier 2 6.5) pairs fields and says what is doubtful; TRANSFORM applies the document by its id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.extensions.acquire.test_collections import manifest, put
from tests.extensions.acquire.test_methods import call, code, good
from tests.messaging import BOB
from tests.service import make_endpoint
from tests.state.store.conftest import place
from tests.stateful import audited_backend, keeping
from tests.things import contracts, joining

from bespeak.state.store.settings import open_store
from bespeak.text.language import embedding

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place"]
SERVICE = {"methods": ("MAP", "TRANSFORM", "IMPORT", "FETCH", "REGISTER"), "participants": joining(contracts)}
VENDOR = {
    "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}}},
    "properties": {
        "orderId": {"type": "string"},
        "qty": {"type": "string"},
        "e-mail": {"type": "string"},
        "shipTo": {"$ref": "#/$defs/place"},
        "giftWrap": {"type": "boolean"},
    },
}
OURS = [
    {"name": "order_id", "type": "string"},
    {"name": "quantity", "type": "integer"},
    {"name": "email", "type": "string"},
    {"name": "ship_to.city", "type": "string"},
    {"name": "city", "type": "string"},
    "priority",
]
ORDER = {"orderId": "A-1", "qty": "12", "e-mail": "a@x.example", "shipTo": {"city": "Oslo", "zip": "0150"}}


def pairs(told: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["target"]: (one["source"], one["status"]) for one in told["fields"]}


@pytest.fixture(autouse=True)
def _no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Align by words alone: vectors, where they are installed, shift every confidence."""
    monkeypatch.setattr(embedding, "_model", lambda: None)


@pytest.mark.requirement("METHODS-6.5-3", "METHODS-6.5-5")
async def test_the_aligner_pairs_fields_and_says_how_sure_it_is(place: str) -> None:
    store = open_store(place, role="sole")
    try:
        async with keeping(**SERVICE, store=store) as bench:
            given: dict[str, Any] = {"source_schema": VENDOR, "target_schema": OURS}
            told = await good(bench, "MAP", **given)
            assert pairs(told) == {
                "order_id": ("orderId", "matched"),
                "quantity": ("qty", "matched"),
                "email": ("e-mail", "matched"),
                "ship_to.city": ("shipTo.city", "matched"),
            }
            assert (told["unmapped_source"], told["unmapped_target"]) == (
                ["giftWrap", "shipTo.zip"],
                ["city", "priority"],
            )
            quantity = told["fields"][1]
            assert (quantity["convert"], 0.75 < quantity["confidence"] < 0.9) == ("integer", True)
            assert quantity["signals"]["lexical"] == 1.0
            assert await good(bench, "MAP", **given) == told
            kept = await good(bench, "FETCH", resource_id=f"maps/{told['map_id']}")
            assert (kept["version"], kept["content"]["fields"]) == (1, told["fields"])
            asked: dict[str, Any] = {"source": [ORDER], "target_format": "json", "mapping": told["map_id"]}
            done = await good(bench, "TRANSFORM", **asked)
            row = {"order_id": "A-1", "quantity": 12, "email": "a@x.example", "ship_to": {"city": "Oslo"}}
            assert (done["data"], done["unused_fields"]) == ([row], ["shipTo.zip"])
            assert await code(bench, "TRANSFORM", **asked, agent=BOB) == (422, "unknown-mapping")
            assert (await good(bench, "TRANSFORM", **{**asked, "mapping": told}))["data"] == [row]
    finally:
        await store.close()


@pytest.mark.requirement("METHODS-6.5-3", "METHODS-6.5-4")
async def test_doubtful_pairs_wait_for_a_yes_and_unmapped_fields_follow_the_policy() -> None:
    async with keeping(**SERVICE) as bench:
        given: dict[str, Any] = {"source_schema": ["customer_name", "fax"], "target_schema": ["name"]}
        told = await good(bench, "MAP", **given, unmapped_policy="preserve")
        assert (pairs(told), told["doubtful"]) == ({"name": ("customer_name", "doubtful")}, 1)
        asked: dict[str, Any] = {"source": {"customer_name": "Ann", "fax": 1}, "target_format": "json"}
        refused = await call(bench, "TRANSFORM", **asked, mapping=told["map_id"])
        assert (refused.refusal, refused.error["pairs"][0]["source"]) == ((422, "doubtful-mapping"), "customer_name")
        done = await good(bench, "TRANSFORM", **asked, mapping=told["map_id"], doubtful="use")
        assert done["data"] == {"name": "Ann", "fax": 1}
        done = await good(bench, "TRANSFORM", **asked, mapping=told["map_id"], doubtful="skip")
        assert done["data"] == {"customer_name": "Ann", "fax": 1}
        for policy, unused in (("ignore", []), ("flag", ["fax"])):
            told = await good(bench, "MAP", **given, unmapped_policy=policy)
            assert told["unmapped_source"] == unused
            done = await good(bench, "TRANSFORM", **asked, mapping=told, doubtful="use")
            assert (done["data"], done["unused_fields"]) == ({"name": "Ann"}, unused)
        rivals = await good(
            bench, "MAP", source_schema=["mail address"], target_schema=["address mail", "mail-address"]
        )
        assert rivals["doubtful"] == 1


async def test_values_are_converted_where_nothing_is_lost() -> None:
    async with keeping(**SERVICE) as bench:
        cases: list[tuple[Any, str, Any]] = [
            ("12", "integer", 12), ("012", "integer", "012"), (2.0, "integer", 2), (2.5, "integer", 2.5),
            ("0.10", "number", 0.1), ("0.1234567890123456789", "number", "0.1234567890123456789"), ("x", "number", "x"),
            (True, "string", "true"), (7, "string", "7"), ("false", "boolean", False), ("no", "boolean", "no"),
            ([1], "string", [1]), ("9" * 200, "integer", "9" * 200), (None, "integer", None), ("NaN", "number", "NaN"),
        ]  # fmt: skip
        for value, kind, expected in cases:
            field = {"target": "b", "source": "a", "status": "matched", "convert": kind}
            document = {"map_id": "m", "unmapped_policy": "flag", "fields": [field]}
            done = await good(bench, "TRANSFORM", source={"a": value}, target_format="json", mapping=document)
            assert (done["data"]["b"], type(done["data"]["b"])) == (expected, type(expected)), value
            assert done.get("unconverted", {}) == ({} if expected != value or value is None or value == 2 else {"b": 1})


@pytest.mark.requirement("METHODS-6.5-3", "METHODS-6.5-7", "METHODS-6.5-8")
async def test_schemas_are_named_and_what_has_no_fields_is_refused(tmp_path: Path) -> None:
    endpoint = make_endpoint("BOOK", "/room", lambda _: {}, properties={"title": {"type": "string"}, "n": {}})
    async with keeping(endpoint, **SERVICE, data_manifest=manifest(tmp_path)) as bench:
        await put(bench.store, {"title": "x", "pages": 3, "by": {"name": "Ann"}})
        for source, count in (("papers", 2), ("contract", 2), ("BOOK /room", 1), (["title", "other"], 1)):
            told = await good(bench, "MAP", source_schema=source, target_schema="contract", strategy="exact")
            assert (len(told["fields"]), told["fields"][0]["confidence"]) == (count, 1.0), source
        assert (await good(bench, "MAP", source_schema="ledger", target_schema=["account"]))["fields"]
        given: dict[str, Any] = {"source_schema": ["a", "b"], "target_schema": ["x", "b"]}
        told = await good(bench, "MAP", **given, strategy="custom", pairs={"x": "a"})
        assert pairs(told) == {"x": ("a", "matched"), "b": ("b", "matched")}
        assert [one["method"] for one in told["fields"]] == ["given", "aligned"]
        loop = {"$defs": {"a": {"properties": {c: {"$ref": "#/$defs/a"} for c in "abcdefgh"}}}, "$ref": "#/$defs/a"}
        refused: list[tuple[dict[str, Any], tuple[int, str]]] = [
            ({"source_schema": "nothing"}, (400, "unknown-schema")),
            ({"source_schema": "BOOK /nowhere"}, (400, "unknown-schema")),
            ({"source_schema": {"type": 7}}, (400, "invalid-schema")),
            ({"source_schema": [7]}, (400, "invalid-schema")),
            ({"source_schema": {"type": "string"}}, (422, "no-fields")),
            ({"source_schema": loop}, (422, "no-fields")),
            ({"source_schema": ["\a"]}, (422, "no-fields")),
            ({"strategy": "custom"}, (422, "invalid-pairs")),
            ({"strategy": "custom", "pairs": {"y": "a"}}, (422, "invalid-pairs")),
            ({"pairs": {"x": "a"}}, (422, "invalid-pairs")),
        ]
        for change, expected in refused:
            assert await code(bench, "MAP", **{**given, **change}) == expected, change
