"""TRANSFORM (Tier 2 4.4): formats, mappings and schemas of the result."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.extensions.acquire.test_collections import manifest
from tests.extensions.acquire.test_methods import call, code, good
from tests.stateful import keeping

pytestmark = [pytest.mark.anyio, pytest.mark.process]  # expressions run in processes of their own
SERVICE = {"methods": ("TRANSFORM", "FILTER")}
CSV = "sku,qty,note\nA-1,2,x\nB-2,10,=1+1\n"


@pytest.mark.requirement("METHODS-4.4-1", "METHODS-4.4-2", "METHODS-4.4-3", "METHODS-4.4-5")
async def test_transform_converts_between_formats() -> None:
    async with keeping(**SERVICE) as bench:
        found = await good(bench, "TRANSFORM", source=CSV, source_format="csv", target_format="json")
        rows = [{"sku": "A-1", "qty": "2", "note": "x"}, {"sku": "B-2", "qty": "10", "note": "=1+1"}]
        assert (found["data"], found["count"], found["media_type"]) == (rows, 2, "application/json")
        for form, start in {"yaml": "- sku: A-1", "xml": "<?xml", "toml": "[[rows]]", "jsonl": '{"sku"'}.items():
            text = await good(bench, "TRANSFORM", source=rows, target_format=form)
            assert text["content"].startswith(start), form
            back = await good(bench, "TRANSFORM", source=text["content"], source_format=form, target_format="json")
            wrapped = {"xml": {"rows": {"row": rows}}, "toml": {"rows": rows}}
            assert back["data"] == wrapped.get(form, rows), form
        text = await good(bench, "TRANSFORM", source=rows, target_format="csv")
        assert text["content"].endswith("B-2,10,'=1+1\r\n")
        kept = await good(bench, "FILTER", data=rows, criteria={"sku": "A-1"}, output_format="xml")
        assert "<row><sku>A-1</sku>" in kept["content"]


async def test_transform_reads_and_writes_parquet_and_refuses_what_it_cannot_hold() -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "Grösse \"'; --": 1.5, "on": True, "at": "2026-11-02", "who": {"name": "Ann", "tags": [1, "x"]}},
        {"id": (1 << 64) - 1, "Grösse \"'; --": -2, "on": None, "at": "", "who": [], "none": None},
    ]
    async with keeping(**SERVICE) as bench:
        made = await good(bench, "TRANSFORM", source=rows, target_format="parquet")
        assert (made["media_type"], made["encoding"]) == ("application/vnd.apache.parquet", "base64")
        assert base64.b64decode(made["content"])[:4] == b"PAR1"
        given = {"source": made["content"], "source_format": "parquet"}
        back = await good(bench, "TRANSFORM", **given, target_format="json")
        assert back["data"] == [{**rows[0], "none": None}, rows[1]]
        assert (await good(bench, "TRANSFORM", **given, target_format="csv"))["content"].startswith("id,")
        for values in ([1, "x"], [1, True], [0.5, 1 << 60], [-1, 1 << 63], [[1], "x"]):
            refused = await code(bench, "TRANSFORM", source=[{"a": one} for one in values], target_format="parquet")
            assert refused == (422, "not-expressible"), values
        for data in ([1], {}, [{"a": 1, "A": 2}]):
            assert (await code(bench, "TRANSFORM", source=data, target_format="parquet"))[1] == "not-expressible"


async def test_a_broken_parquet_file_and_one_that_grows_are_invalid_sources(tmp_path: Path) -> None:
    database = duckdb.connect()
    # A value that is stored once, and rows that are; both are some kilobytes.
    for name, rows in {
        "wide": "repeat('x', 200000) AS v FROM range(3000)",
        "long": "7 AS v FROM range(3000000)",
    }.items():
        database.execute(f"COPY (SELECT {rows}) TO '{tmp_path / name}' (FORMAT parquet, COMPRESSION zstd)")
    made = [(tmp_path / name).read_bytes() for name in ("wide", "long")]
    assert max(map(len, made)) < 400_000
    async with keeping(**SERVICE) as bench:
        for content in (*made, b"", b"PAR1", made[1][:-9], made[1].replace(b"v", b"\xff")):
            given = {"source": base64.b64encode(content).decode(), "source_format": "parquet"}
            refused = await code(bench, "TRANSFORM", **given, target_format="json")
            assert refused[1] == "invalid-source", content[:20]
        assert (await code(bench, "TRANSFORM", source="?", source_format="parquet", target_format="json"))[1] == (
            "invalid-source"
        )


@pytest.mark.requirement("METHODS-4.4-4")
async def test_a_mapping_builds_rows_from_paths_and_expressions_and_tells_what_it_did_not_use() -> None:
    async with keeping(**SERVICE) as bench:
        orders: list[dict[str, Any]] = [
            {"id": 1, "who": {"name": "Ann", "vat": "DE1"}, "lines": [{"sku": "A"}], "price": 2, "qty": 3, "x": 0},
            {"id": 2, "who": {"name": "Bob"}, "lines": [], "price": 1.5, "qty": 2},
        ]
        mapping = {
            "order.id": "id",
            "order.customer": "who.name",
            "first": "lines.0.sku",
            "total": {"expression": "double(price) * double(qty)"},
        }
        found = await good(bench, "TRANSFORM", source=orders, target_format="json", mapping=mapping)
        assert found["data"] == [
            {"order": {"id": 1, "customer": "Ann"}, "first": "A", "total": 6.0},
            {"order": {"id": 2, "customer": "Bob"}, "total": 3.0},
        ]
        assert (found["missing"], found["unused_fields"]) == ({"first": 1}, ["who.vat", "x"])
        found = await good(bench, "TRANSFORM", source=orders[0], target_format="json", mapping={"a": "price"})
        assert (found["data"], found["count"]) == ({"a": 2}, 1)
        for wrong in ({"a": "id", "a.b": "id"}, {"a..b": "id"}, {"": "id"}):
            assert await code(bench, "TRANSFORM", source=orders, target_format="json", mapping=wrong) == (
                422,
                "invalid-mapping",
            ), wrong
        assert (await code(bench, "TRANSFORM", source=[1], target_format="json", mapping={"a": "b"}))[0] == 422
        failing = {"a": {"expression": "lines[0].sku"}}
        reply = await call(bench, "TRANSFORM", source=orders, target_format="json", mapping=failing)
        assert (reply.status, reply.json["error"]["code"]) == (422, "expression-failed")
        assert reply.json["error"]["row"] == 1
        wrong = {"a": {"expression": "1 +"}}
        refused = await code(bench, "TRANSFORM", source=orders, target_format="json", mapping=wrong)
        assert refused == (400, "invalid-expression")
        assert (await good(bench, "TRANSFORM", source=[], target_format="json", mapping=failing))["data"] == []


@pytest.mark.requirement("METHODS-4.4-3", "METHODS-4.4-6")
async def test_a_result_that_does_not_meet_the_schema_is_refused_with_its_places() -> None:
    async with keeping(**SERVICE) as bench:
        row = {"type": "object", "properties": {"qty": {"type": "integer"}}, "required": ["sku"]}
        given: dict[str, Any] = {"source": CSV, "source_format": "csv"}
        reply = await call(bench, "TRANSFORM", **given, target_format=row)
        assert (reply.status, reply.json["error"]["code"]) == (422, "schema-not-met")
        assert [one["pointer"] for one in reply.json["error"]["errors"]] == ["/0/qty", "/1/qty"]
        mapping = {"sku": "sku", "qty": {"expression": "int(qty)"}}
        for schema, applied in ((row, "each row"), ({"type": "array", "items": row}, "the result")):
            found = await good(bench, "TRANSFORM", **given, target_format=schema, mapping=mapping)
            assert (found["data"][1], found["schema_applied_to"]) == ({"sku": "B-2", "qty": 10}, applied)
            assert found["unused_fields"] == ["note"]
        for wrong in ({"type": "moon"}, {"$ref": "http://127.0.0.1:1/x"}):
            assert await code(bench, "TRANSFORM", **given, target_format=wrong) == (400, "invalid-schema")


@pytest.mark.requirement("METHODS-4.4-6")
async def test_a_source_that_cannot_be_read_or_written_is_refused_with_its_line() -> None:
    async with keeping(**SERVICE) as bench:
        reply = await call(bench, "TRANSFORM", source="a,b\n1\n", source_format="csv", target_format="json")
        assert (reply.status, reply.json["error"]["code"]) == (400, "invalid-source")
        assert reply.json["error"]["line"] == 2
        bomb = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
        assert (await code(bench, "TRANSFORM", source=bomb, source_format="xml", target_format="json"))[0] == 400
        assert await code(bench, "TRANSFORM", source="a", target_format="json") == (422, "invalid-source-format")
        refused = await code(bench, "TRANSFORM", source=[{}], source_format="csv", target_format="json")
        assert refused == (422, "invalid-source-format")
        assert await code(bench, "TRANSFORM", source=[1], target_format="csv") == (422, "not-expressible")
        assert (await code(bench, "TRANSFORM", source=[1], target_format="parquet"))[0] == 422


async def test_a_collection_is_read_only_under_the_authority_of_the_caller(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, sensitivity="high")) as bench:
        source = {"collection": "ledger", "filter": {"account": "a-1"}}
        given: dict[str, Any] = {"source": source, "target_format": "json", "mapping": {"n": "id"}}
        found = await good(bench, "TRANSFORM", **given, authority="data:ledger")
        assert found["data"] == [{"n": 1}, {"n": 2}, {"n": 4}, {"n": 6}]
        assert await code(bench, "TRANSFORM", **given) == (404, "collection-not-found")
        plain = await good(bench, "TRANSFORM", source=source, source_format="json", target_format="json")
        assert plain["data"] == source
        assert await code(bench, "TRANSFORM", source={"collection": 7}, target_format="json") == (422, "invalid-source")
