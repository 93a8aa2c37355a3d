"""Sources read the caller's own records in a scope, and data sets that it may read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.data.ledger import data_set
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.policy import Policies
from bespeak.contract.service import DataManifest
from bespeak.extensions.reports.report import MOST_ROWS
from bespeak.state.store.commands.records import PutRecord

pytestmark = pytest.mark.anyio

FRIEND = "b" * 64
NEWS = make_endpoint("FETCH", "/news", echo)
NEGOTIATES = Policies(scope_required_for_invocation=False, synthesis_enabled=True)


async def report(bench: StatefulBench, report_type: str, scope: Any = "all", **headers: str) -> Any:
    """Make a report and return it as JSON, or the refusal."""
    body = {"report_type": report_type, "scope": scope, "recipient": "me"}
    made = await bench.send("REPORT", "/", body, **headers)
    if "error" in made.json:
        return made.error
    document = (await bench.send("FETCH", f"/documents/{made.json['result']['document_id']}")).json["result"]
    return json.loads(document["text"])


async def put(
    bench: StatefulBench, kind: str, name: str, content: Any, *, owner: str = AGENT, state: str = "sent"
) -> None:
    await bench.store.do(PutRecord(name, kind, owner, state, json.dumps(content)))


async def test_records_are_chosen_by_time_and_id() -> None:
    async with keeping(methods=("REPORT", "LOG")) as bench:
        for owner in (AGENT, FRIEND):
            content = {"event_type": "door", "data": 1, "severity": "info"}
            await put(bench, "log", f"log-{owner[0]}", content, owner=owner)

        async def ids(scope: Any) -> list[str]:
            return [row["Id"] for row in (await report(bench, "log", scope))["rows"]]

        assert await ids("all") == await ids("1h") == await ids({"ids": ["log-a", "log-b", "log-c"]}) == ["log-a"]
        assert await ids("/2026-01-01") == await ids({"ids": ["log-a"], "to": "2026-01-01"}) == []


async def test_a_long_report_is_cut_and_says_so() -> None:
    async with keeping(methods=("REPORT",)) as bench:
        content = json.dumps({"event_type": "e", "data": 1, "severity": "info"})
        for start in range(0, MOST_ROWS + 1, 100):
            some = range(start, min(start + 100, MOST_ROWS + 1))
            await bench.store.do(*(PutRecord(f"log-{n:05}", "log", AGENT, "logged", content) for n in some))
        found = await report(bench, "log")
        assert (len(found["rows"]), found["truncated"]) == (MOST_ROWS, True)
        assert found["chart"] == {"info": MOST_ROWS}


async def test_workflows_are_counted_by_state() -> None:
    async with keeping(NEWS, methods=("REPORT", "CHAIN")) as bench:
        await bench.send("CHAIN", "/", {"steps": [{"method": "FETCH", "path": "/news"}]})
        found = await report(bench, "workflows")
        [row] = found["rows"]
        assert (row["Method"], row["Steps"], row["State"]) == ("CHAIN", 1, "completed")
        assert found["chart"] == {"completed": 1}


async def test_messages_of_all_kinds_are_one_report() -> None:
    async with keeping(methods=("REPORT",)) as bench:
        await put(bench, "broadcast", "brd-1", {"recipients": ["news", FRIEND]})
        await put(bench, "delivery", "del-1", {"recipient": "ann@acme.example"}, state="delivered")
        found = await report(bench, "messages")
        assert [(row["Kind"], row["Recipients"], row["State"]) for row in found["rows"]] == [
            ("broadcast", f"news, {FRIEND}", "sent"),
            ("delivery", "ann@acme.example", "delivered"),
        ]


async def test_costs_are_those_of_the_callers_own_latest_calls() -> None:
    other = make_endpoint("FETCH", "/prices", echo)
    async with keeping(NEWS, other, methods=("REPORT",)) as bench:
        await bench.send("FETCH", "/news")
        for path in ("/news", "/prices"):
            await bench.send("FETCH", path, agent=FRIEND)
        found = await report(bench, "costs")
        [row] = found["rows"]
        assert (row["Method"], row["Path"], row["Calls"], row["Declared"]) == ("FETCH", "/news", 1, "")
        assert row["Seconds"] == found["chart"]["FETCH /news"]


async def test_a_data_set_is_reported_with_its_numbers(tmp_path: Path) -> None:
    manifest = DataManifest(available_data=(data_set("function", tmp_path),))
    async with keeping(methods=("REPORT",), data_manifest=manifest, policies=NEGOTIATES) as bench:
        found = await report(bench, "data", {"data": "ledger", "filters": {"account_in": ["a-1", "c-3"]}})
        assert [row["id"] for row in found["rows"]] == [1, 2, 4, 5, 6]
        assert (found["chart_title"], found["chart"]["c-3"]) == ("amount by account", 0.1)
        assert found["title"] == "test.example: ledger"
        wrong = await report(bench, "data", {"data": "ledger", "filters": {"colour": "red"}})
        assert wrong["code"] == "invalid-scope"


async def test_a_data_set_needs_its_scopes_and_negotiation(tmp_path: Path) -> None:
    secret = data_set("function", tmp_path, sensitivity="high")
    manifest = DataManifest(available_data=(secret,))
    [scope] = secret.required_scopes
    async with keeping(methods=("REPORT",), data_manifest=manifest, policies=NEGOTIATES) as bench:
        refused, unknown = [await report(bench, "data", {"data": name}) for name in ("ledger", "nothing")]
        assert refused == unknown
        assert len((await report(bench, "data", {"data": "ledger"}, authority_scope=scope))["rows"]) == 6
    async with keeping(methods=("REPORT",), data_manifest=manifest) as bench:
        closed = await report(bench, "data", {"data": "ledger"}, authority_scope=scope)
        assert closed["code"] == "invalid-scope"
