"""Reports of the service: functions declared with `@app.report`, which agents ask for with REPORT."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from tests.agent.discovery.web import always, serving
from tests.cases import rows
from tests.messaging import BOB
from tests.service import AGENT
from tests.stateful import StatefulBench, audited_backend, keeping

from bespeak import App, Chart, Context, ContractError, Refusal, Report, Table
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.reports import report as module
from bespeak.state.store.commands.records import ListRecords

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio


@dataclass
class Sale:
    day: date
    region: str
    amount: Decimal
    note: str | None = None


SALES = [
    Sale(date(2026, 11, 2), "north", Decimal("10.50")),
    Sale(date(2026, 11, 3), "south", Decimal("7.25"), "<b>łčü</b> 東京"),
    Sale(date(2026, 11, 9), "north", Decimal("3.00")),
]


def make_app() -> App:
    return App("Shop", server_id="shop.example", operator="Shop", contact="ops@shop.example")


app = make_app()
asked: list[tuple[Any, ...]] = []


@app.report("sales")
def list_sales(start: date, end: date, region: Literal["north", "south"] | None = None) -> list[Sale]:
    """List the sales of a range of days."""
    asked.append((start, end, region))
    return [one for one in SALES if start <= one.day < end and region in (None, one.region)]


@app.report("weekly-sales", scopes=["sales:read"])
async def summarise(context: Context, least: int = 0) -> Report:
    """Summarise the sales.

    Errors:
        no_sales: Nothing was sold.
    """
    if least > 100:
        raise Refusal("no_sales", "Nothing was sold.", least=least)
    return Report(
        title="Weekly *sales*",
        text="All is\nwell.\n\n\n\x00 Really. ",
        figures={"Sum": Decimal("20.75"), "Asked by": context.agent_id, "Nothing": None},
        charts=[
            Chart("By region", {"north": 13.5, "south": 7.25}),
            Chart("By day", {str(one.day): float(one.amount) for one in SALES}, "line"),
        ],
        tables=[Table(SALES, "Sales"), Table([{"a": 1}, {"b": {"c": [2]}}], "Others", truncated=True)],
    )


@app.report("moments")
def list_moments(start: datetime | None = None, end: datetime | None = None) -> list[dict[str, Any]]:
    """List the bounds."""
    return [{"start": start, "end": end}]


@app.report("odd")
def fail(how: str) -> list[dict[str, Any]]:
    """Return what is not a report."""
    if how == "raise":
        raise RuntimeError("a secret of the shop")
    odd: dict[str, Any] = {"none": None, "nan": [{"n": math.nan}], "number": [1], "empty": [], "text": ["a"]}
    return odd[how]  # type: ignore[no-any-return]


@app.report("long")
def repeat(times: int) -> list[dict[str, Any]]:
    """Return rows of two cells."""
    return [{"a": 1, "b": 2}] * times


@asynccontextmanager
async def shop(**fields: Any) -> AsyncIterator[StatefulBench]:
    async with keeping(participants=app.service().participants, **fields) as bench:
        yield bench


async def ask(bench: StatefulBench, kind: str, scope: Any = "all", form: str = "json", **headers: Any) -> Any:
    """Ask for a report."""
    given = {"report_type": kind, "scope": scope, "recipient": headers.pop("recipient", AGENT), "format": form}
    return await bench.send("REPORT", "/", given, **headers)


async def made(bench: StatefulBench, kind: str, scope: Any = "all", form: str = "json", **headers: Any) -> str:
    """Return the text of a report, or the beginning of a PDF."""
    reply = await ask(bench, kind, scope, form, **headers)
    assert reply.status == 200, reply.json
    document = (await bench.send("FETCH", f"/documents/{reply.json['result']['document_id']}")).json["result"]
    text: str = document["text"] if form != "pdf" else document["base64"]
    return text


async def test_rows_are_a_table_in_every_format_and_keep_exact_amounts() -> None:
    async with shop() as bench:
        content = json.loads(await made(bench, "sales", "2026-11-02/2026-11-09"))
        assert content["tables"][0]["rows"] == [
            {"day": "2026-11-02", "region": "north", "amount": "10.50", "note": None},
            {"day": "2026-11-03", "region": "south", "amount": "7.25", "note": "<b>łčü</b> 東京"},
        ]
        assert content["title"] == "test.example: sales"
        assert "&lt;b&gt;łčü&lt;/b&gt; 東京" in await made(bench, "sales", form="html")
        assert r"| 2026-11-03 | south | 7.25 | \<b\>łčü\</b\> 東京 |" in await made(bench, "sales", form="markdown")
        assert (await made(bench, "sales", form="pdf")).startswith("JVBERi")


async def test_a_report_has_text_figures_charts_and_several_tables() -> None:
    async with shop() as bench:
        held = {"authority_scope": "sales:read"}
        content = json.loads(await made(bench, "weekly-sales", **held))
        assert (content["title"], content["text"]) == ("Weekly *sales*", "All is well.\n\nReally.")
        assert content["figures"] == {"Sum": "20.75", "Asked by": AGENT, "Nothing": None}
        assert [(one["kind"], len(one["points"])) for one in content["charts"]] == [("bar", 2), ("line", 3)]
        assert content["tables"][1] == {
            "rows": [{"a": 1, "b": None}, {"a": None, "b": '{"c":[2]}'}],
            "title": "Others",
            "truncated": True,
        }
        page = await made(bench, "weekly-sales", form="html", **held)
        assert page.count("<svg") == 2
        assert "<h2>Others</h2>" in page
        assert "5 (there are more)" in page
        assert "- Sum: **20.75**" in await made(bench, "weekly-sales", form="markdown", **held)
        assert (await made(bench, "weekly-sales", form="pdf", **held)).startswith("JVBERi")


@pytest.mark.parametrize(
    ("scope", "given"),
    [
        ("2026-11-02/2026-11-09", (date(2026, 11, 2), date(2026, 11, 9), None)),
        ("2026-11-02T08:00:00Z/2026-11-03T08:00:00Z", (date(2026, 11, 2), date(2026, 11, 4), None)),
        (
            {"from": "2026-11-02", "to": "2026-11-03", "filters": {"region": "north"}},
            (date(2026, 11, 2), date(2026, 11, 3), "north"),
        ),
        ("/2026-11-09", (date(1970, 1, 1), date(2026, 11, 9), None)),
    ],
)
async def test_the_range_of_the_scope_is_start_and_end(scope: Any, given: tuple[Any, ...]) -> None:
    async with shop() as bench:
        asked.clear()
        await made(bench, "sales", scope)
        assert asked == [given]


async def test_days_of_an_open_range_include_today_and_optional_bounds_keep_their_defaults() -> None:
    async with shop() as bench:
        asked.clear()
        await made(bench, "sales", "7d")
        (start, end, _) = asked[0]
        assert 7 <= (end - start).days <= 9
        assert end > datetime.now(UTC).date()
        [row] = json.loads(await made(bench, "moments", "2026-11-02/"))["tables"][0]["rows"]
        assert row == {"start": "2026-11-02T00:00:00Z", "end": None}


@rows(
    "kind, scope, status, code, place",
    ("sales", {"filters": {"region": "west"}}, 422, "input-validation-failed", "/scope/filters/region"),
    ("sales", {"filters": {"colour": "red"}}, 422, "input-validation-failed", "/scope/filters"),
    ("odd", "all", 422, "input-validation-failed", "/scope/filters"),
    ("sales", {"filters": {"start": "2026-11-02"}}, 400, "invalid-scope", "/scope"),
    ("sales", {"ids": ["a"]}, 400, "invalid-scope", "/scope"),
    ("sales", {"data": "ledger"}, 400, "invalid-scope", "/scope"),
    ("odd", "7d", 400, "invalid-scope", "/scope"),
    ("odd", "/2026-11-02", 400, "invalid-scope", "/scope"),
    ("sales", "a week", 400, "invalid-scope", "/scope"),
)
async def test_a_scope_that_the_report_does_not_take_is_refused_with_its_place(
    kind: str, scope: Any, status: int, code: str, place: str
) -> None:
    async with shop() as bench:
        reply = await ask(bench, kind, scope)
        assert (reply.status, reply.error["code"]) == (status, code), reply.json
        assert place == (reply.error.get("field") or reply.error["violations"][0]["pointer"])
        assert f"/report/{kind}" not in reply.error["message"]
        assert await bench.store.read(ListRecords("report")) == []


async def test_scopes_are_needed_and_unknown_types_are_told_those_that_the_agent_may_ask_for() -> None:
    async with shop() as bench:
        assert (await ask(bench, "weekly-sales", "7d")).refusal == (455, "scope-violation")
        told = {}
        for scope in ("", "sales:read"):
            held = {"authority_scope": scope} if scope else {}
            refused = await ask(bench, "nothing", **held)
            assert refused.refusal == (422, "unknown-report-type")
            told[scope] = refused.error["report_types"]
        assert [name for name in told["sales:read"] if name not in told[""]] == ["weekly-sales"]
        assert {"sales", "log"} <= set(told[""])


async def test_a_refusal_of_the_function_is_that_of_the_method() -> None:
    async with shop() as bench:
        reply = await ask(bench, "weekly-sales", {"filters": {"least": 101}}, authority_scope="sales:read")
        assert (reply.status, reply.error["code"], reply.error["details"]["least"]) == (422, "no_sales", 101)
        assert await bench.store.read(ListRecords("report")) == []


@rows("how", *("raise", "none", "nan", "number", "text"))
async def test_a_function_that_fails_is_a_fault_that_tells_nothing(how: str) -> None:
    async with shop() as bench:
        reply = await ask(bench, "odd", {"filters": {"how": how}})
        assert reply.status == 500
        assert "secret" not in json.dumps(reply.json)
        assert await bench.store.read(ListRecords("report")) == []


async def test_a_report_without_rows_says_so_in_every_format() -> None:
    async with shop() as bench:
        scope = {"filters": {"how": "empty"}}
        for form in ("html", "markdown"):
            assert "No rows." in await made(bench, "odd", scope, form)
        assert json.loads(await made(bench, "odd", scope))["tables"][0]["rows"] == []
        assert await made(bench, "odd", scope, "pdf")


async def test_a_report_with_too_many_cells_asks_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 10)
    async with shop() as bench:
        assert len(json.loads(await made(bench, "long", {"filters": {"times": 5}}))["tables"][0]["rows"]) == 5
        reply = await ask(bench, "long", {"filters": {"times": 6}})
        assert reply.refusal == (400, "invalid-scope")
        assert reply.error["message"] == "`scope` selects 12 cells, more than 10; narrow it."


async def test_a_large_table_is_a_small_pdf() -> None:
    async with shop() as bench:
        assert len(await made(bench, "long", {"filters": {"times": 3000}}, "pdf")) < 500_000


async def test_a_repeated_request_is_answered_without_another_report() -> None:
    async with shop() as bench:
        asked.clear()
        replies = [await ask(bench, "sales", idempotency_key="monday") for _ in range(2)]
        assert replies[0].json["result"] == replies[1].json["result"]
        assert (len(asked), len(await bench.store.read(ListRecords("report")))) == (1, 1)


async def test_it_is_delivered_as_the_reports_of_every_server_are() -> None:
    settings = DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1",))
    document = ServerDocument(extension_tables={"delivery": settings})
    async with serving(always(200), tls=None) as web, shop(document=document, methods=("REPORT",)) as bench:
        receipt = await ask(bench, "sales", form="markdown", recipient=f"http://127.0.0.1:{web.port}/in")
        assert receipt.json["result"]["status"] == "queued"
        async with asyncio.timeout(20):
            while not web.asked:
                await asyncio.sleep(0.01)
        assert "| 2026-11-09 | north | 3.00 |" in json.loads(web.asked[0].body)["content"]["text"]
        sent = (await ask(bench, "sales", recipient=BOB)).json["result"]
        [message] = (await bench.send("QUERY", "/messages", {}, agent=BOB)).json["result"]["messages"]
        assert message["content"]["document_id"] == sent["document_id"]
        assert (await bench.send("FETCH", f"/documents/{sent['document_id']}", agent=BOB)).status == 200
        assert (await bench.send("FETCH", f"/documents/{sent['document_id']}", agent="c" * 64)).status == 404


async def test_the_subscribers_of_a_channel_receive_it_and_nobody_else_does() -> None:
    async with shop(methods=("REPORT", "REGISTER")) as bench:
        subscription = {"entity_type": "subscription", "data": {"channel": "leaders"}}
        assert (await bench.send("REGISTER", "/", subscription, agent=BOB)).status == 200
        sent = (await ask(bench, "sales", recipient="channel:leaders")).json["result"]
        assert sent["status"] == "queued"
        async with asyncio.timeout(20):
            while not (found := (await bench.send("QUERY", "/messages", {}, agent=BOB)).json["result"]["messages"]):
                await asyncio.sleep(0.01)
        assert (found[0]["kind"], found[0]["content"]["document_id"]) == ("report", sent["document_id"])
        path = f"/documents/{sent['document_id']}"
        assert [(await bench.send("FETCH", path, agent=one)).status for one in (AGENT, BOB, "c" * 64)] == [
            200,
            200,
            404,
        ]
        # A principal of the same name is somebody else.
        stored = (await ask(bench, "sales", recipient="leaders")).json["result"]
        assert stored["status"] == "stored"
        assert (await bench.send("FETCH", f"/documents/{stored['document_id']}", agent=BOB)).status == 404


async def test_a_channel_without_subscribers_or_of_somebody_else_is_refused() -> None:
    async with shop(methods=("REPORT", "REGISTER")) as bench:
        assert (await ask(bench, "sales", recipient="channel:nobody")).refusal == (422, "invalid-recipient")
        channel = {"entity_type": "channel", "data": {"channel": "board"}}
        assert (await bench.send("REGISTER", "/", channel, agent=BOB)).status == 200
        assert (await ask(bench, "sales", recipient="channel:board")).refusal == (403, "channel-refused")


def returns_nothing() -> None:
    """Return nothing."""


def returns_an_object() -> dict[str, Any]:
    """Return one object."""
    return {}


async def yields() -> AsyncIterator[Sale]:
    """Yield sales."""
    for one in SALES:
        yield one


def refuses() -> list[Sale]:
    """Refuse."""
    raise Refusal("closed", "The shop is closed.")


@rows(
    "name, function, message",
    ("r", returns_nothing, "it must return a list of rows, or a Report"),
    ("r", returns_an_object, "it must return a list of rows, or a Report"),
    ("r", yields, "return a list"),
    ("r", refuses, "it refuses with 'closed', which is not a declared error"),
    ("log", list_sales, "every server has a report of this name"),
    ("A B", list_sales, "the name must be lower-case words"),
)
def test_what_cannot_be_a_report_is_refused_where_it_is_declared(name: str, function: Any, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        make_app().report(name)(function)


def test_a_declared_report_enables_the_method() -> None:
    assert {method for one in app.service().participants for method in one.methods} == {"REPORT"}
