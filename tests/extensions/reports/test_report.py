"""Reports: their scope, sources, formats and documents, and REPORT, which delivers them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.web import always, serving
from tests.cases import rows
from tests.extensions.data.ledger import data_set
from tests.extensions.reports.sample import HOSTILE, SAMPLE
from tests.payments import buy, ledger, selling
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.policy import Policies
from bespeak.contract.service import DataManifest
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.messages.store import ClaimOutbox
from bespeak.extensions.reports import methods as module
from bespeak.extensions.reports.formats import (
    bar_chart,
    has_typst,
    line_chart,
    numeric_columns,
    write_html,
    write_json,
    write_markdown,
    write_pdf,
)
from bespeak.extensions.reports.methods import ReportDocument, decode
from bespeak.extensions.reports.report import (
    MOST_BARS,
    MOST_IDS,
    MOST_ROWS,
    ReportScope,
    Table,
    as_cell,
    read_scope,
    sum_by,
)
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.runtime.concurrency import FairSemaphore
from bespeak.state.store.commands.records import ListRecords, PutRecord

pytestmark = pytest.mark.anyio


def test_a_cell_is_a_number_or_one_bounded_line() -> None:
    assert [as_cell(value) for value in (None, 1, 2.5, True, "a\nb\0c", {"n": [1]})] == [
        *(None, 1, 2.5, True, "a b c", '{"n":[1]}')
    ]
    assert as_cell("\ud800") == " "
    long = as_cell("x" * 1_000_000)
    assert isinstance(long, str)
    assert (len(long), long[-1]) == (300, "…")


def test_charts_sum_numbers_and_share_a_bar_beyond_the_largest() -> None:
    assert list(sum_by([("a", 1), ("b", 5), ("a", 2)]).items()) == [("b", 5), ("a", 3)]
    sums = sum_by((f"l{n:03}", n) for n in range(100))
    assert len(sums) == MOST_BARS
    assert sums["others"] == sum(range(100)) - sum(range(81, 100))


DAY = 86400.0
NOW = 1_800_000_000.0


@rows(
    "scope, found, text",
    ("all", ReportScope(), "all"),
    ("7d", ReportScope(start=NOW - 7 * DAY), "2027-01-08T08:00:00Z to now"),
    ("2026-11-01/2026-11-02", ReportScope(1793491200.0, 1793577600.0), "2026-11-01T00:00:00Z to 2026-11-02T00:00:00Z"),
    ("/2026-11-02", ReportScope(end=1793577600.0), "the beginning to 2026-11-02T00:00:00Z"),
    ({"from": "2026-11-01"}, ReportScope(start=1793491200.0), "2026-11-01T00:00:00Z to now"),
    ({"ids": ["a", "b", "a"]}, ReportScope(ids=("a", "b")), "2 records by id"),
    ({"data": "rooms", "filters": {"n": 1}}, ReportScope(data="rooms", filters={"n": 1}), "rooms"),
    (
        {"from": "7d", "filters": {"n": 1}},
        ReportScope(NOW - 7 * DAY, filters={"n": 1}),
        "2027-01-08T08:00:00Z to now, n: 1",
    ),
    ({}, ReportScope(), "all"),
)
def test_a_scope_is_read_and_written(scope: Any, found: ReportScope, text: str) -> None:
    assert read_scope(scope, NOW) == found
    assert str(found) == text


@rows(
    "scope",
    *("week", "2026-13-01/2026-12-01", "2026-12-01/2026-11-01", "a/b", "\0", "9" * 4000),
    *({"from": 1}, {"since": "2026"}, {"ids": "a"}, {"ids": [1]}, {"ids": ["x"] * (MOST_IDS + 1)}, {"ids": [""]}),
    *({"data": 1}, {"data": "a\nb"}, {"filters": []}, {"x" * 1_000_000: 1}, {"ids": ["x" * 1_000_000]}),
)
def test_what_is_not_a_scope_is_explained_briefly(scope: Any) -> None:
    found = read_scope(scope, NOW)
    assert isinstance(found, str)
    assert len(found) < 200


VALUES = st.none() | st.integers() | st.text(max_size=30) | st.lists(st.text(max_size=5), max_size=3)


@given(st.text(max_size=40) | st.dictionaries(st.sampled_from(["from", "to", "ids", "data", "filters", "x"]), VALUES))
def test_any_text_or_object_is_a_scope_or_a_fault(scope: Any) -> None:
    assert isinstance(read_scope(scope, NOW), (ReportScope, str))


class Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_json_has_rows_by_column_and_columns_of_numbers_are_known() -> None:
    content = json.loads(write_json(SAMPLE))
    assert content["tables"][0]["rows"][0] == {"Id": "pur-1", "Item": HOSTILE, "amount_paid": 12.5, "Refunded": None}
    assert content["charts"][0]["points"] == {"settled, EUR": 312.5, HOSTILE: -7}
    assert content["figures"]["Sum"] == 312.5
    assert numeric_columns(SAMPLE.tables[0]) == ["amount_paid"]


def test_html_and_markdown_show_markup_as_text_and_load_nothing() -> None:
    page = Page(write_html(SAMPLE).decode())
    assert page.texts.count(HOSTILE) == 2
    assert f"1. {HOSTILE}" in page.texts
    assert not page.tags & {"script", "link", "img", "iframe", "a", "form", "i"}
    assert {"svg", "rect", "polyline", "table", "p"} <= page.tags
    assert {"Amount paid", "0.3", "–", "No rows."} <= set(page.texts)
    text = write_markdown(SAMPLE).decode()
    marked = r'\<script\>alert(1)\</script\> \| \#panic("x") \*bold\* \[a\](b) $x$ \& łčü'
    lines = text.splitlines()
    assert f"| pur-1 | {marked} | 12.5 |  |" in lines
    assert {rf"1\. {marked}", rf"- \- {marked}: **{marked}**", "- Average: **0.3**"} <= set(lines)
    assert "| Id | Item | Amount paid | Refunded |" in lines


def test_equal_reports_are_equal_bytes_and_empty_ones_a_pdf_too() -> None:
    for write in (write_json, write_html, write_markdown):
        assert write(SAMPLE) == write(SAMPLE)
    empty = msgspec.structs.replace(SAMPLE, text="", figures={}, charts=[], tables=[Table([])])
    assert (write_pdf(empty) or b"").startswith(b"%PDF-")


def test_a_report_becomes_the_same_pdf_each_time() -> None:
    assert has_typst()
    made = write_pdf(SAMPLE)
    assert made is not None
    assert made.startswith(b"%PDF-")
    assert made == write_pdf(SAMPLE)


def test_what_cannot_be_set_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    import typst

    def fail(*_: object, **__: object) -> bytes:
        raise typst.TypstError("no font", [], "")

    monkeypatch.setattr(typst, "compile", fail)
    assert write_pdf(SAMPLE) is None
    assert "could not be written as PDF" in caplog.text


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LABELS = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=40)


@given(st.dictionaries(LABELS, NUMBERS, max_size=5))
def test_every_number_has_a_bar_and_a_dot_at_a_finite_place(numbers: dict[str, float]) -> None:
    for draw, mark in ((bar_chart, "rect"), (line_chart, "circle")):
        chart = draw(numbers, "Numbers")
        assert len(ElementTree.fromstring(chart).findall(f"{{*}}{mark}")) == len(numbers)
        shapes = [dict(one.attrib) for one in ElementTree.fromstring(chart).iter() if one.tag.endswith(mark)]
        assert not any("nan" in text or "inf" in text for shape in shapes for text in shape.values())


def test_a_chart_is_the_same_for_the_same_numbers_and_has_no_markup_of_its_labels() -> None:
    chart = bar_chart({"<b>": 2, "c": -1}, "<i>")
    assert chart == bar_chart({"<b>": 2, "c": -1}, "<i>")
    assert "<b>" not in chart
    assert "<title>&lt;i&gt;</title>" in chart
    assert 'width="360.0"' in chart
    assert 'width="180.0"' in chart


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


def rows_of(report: Any) -> list[Any]:
    [table] = report["tables"]
    rows: list[Any] = table["rows"]
    return rows


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
            return [row["Id"] for row in rows_of(await report(bench, "log", scope))]

        assert await ids("all") == await ids("1h") == await ids({"ids": ["log-a", "log-b", "log-c"]}) == ["log-a"]
        assert await ids("/2026-01-01") == await ids({"ids": ["log-a"], "to": "2026-01-01"}) == []


async def test_a_long_report_is_cut_and_says_so() -> None:
    async with keeping(methods=("REPORT",)) as bench:
        content = json.dumps({"event_type": "e", "data": 1, "severity": "info"})
        for start in range(0, MOST_ROWS + 1, 100):
            some = range(start, min(start + 100, MOST_ROWS + 1))
            await bench.store.do(*(PutRecord(f"log-{n:05}", "log", AGENT, "logged", content) for n in some))
        found = await report(bench, "log")
        assert (len(rows_of(found)), found["tables"][0]["truncated"]) == (MOST_ROWS, True)
        assert found["charts"][0]["points"] == {"info": MOST_ROWS}


async def test_workflows_are_counted_by_state() -> None:
    async with keeping(NEWS, methods=("REPORT", "CHAIN")) as bench:
        await bench.send("CHAIN", "/", {"steps": [{"method": "FETCH", "path": "/news"}]})
        found = await report(bench, "workflows")
        [row] = rows_of(found)
        assert (row["Method"], row["Steps"], row["State"]) == ("CHAIN", 1, "completed")
        assert found["charts"][0]["points"] == {"completed": 1}


async def test_messages_of_all_kinds_are_one_report() -> None:
    async with keeping(methods=("REPORT",)) as bench:
        await put(bench, "broadcast", "brd-1", {"recipients": ["news", FRIEND]})
        await put(bench, "delivery", "del-1", {"recipient": "ann@acme.example"}, state="delivered")
        found = await report(bench, "messages")
        assert [(row["Kind"], row["Recipients"], row["State"]) for row in rows_of(found)] == [
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
        [row] = rows_of(found)
        assert (row["Method"], row["Path"], row["Calls"], row["Declared"]) == ("FETCH", "/news", 1, "")
        assert row["Seconds"] == found["charts"][0]["points"]["FETCH /news"]


async def test_a_data_set_is_reported_with_its_numbers(tmp_path: Path) -> None:
    manifest = DataManifest(available_data=(data_set("function", tmp_path),))
    async with keeping(methods=("REPORT",), data_manifest=manifest, policies=NEGOTIATES) as bench:
        found = await report(bench, "data", {"data": "ledger", "filters": {"account_in": ["a-1", "c-3"]}})
        assert [row["id"] for row in rows_of(found)] == [1, 2, 4, 5, 6]
        assert (found["charts"][0]["title"], found["charts"][0]["points"]["c-3"]) == ("amount by account", 0.1)
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
        assert len(rows_of(await report(bench, "data", {"data": "ledger"}, authority_scope=scope))) == 6
    async with keeping(methods=("REPORT",), data_manifest=manifest) as bench:
        closed = await report(bench, "data", {"data": "ledger"}, authority_scope=scope)
        assert closed["code"] == "invalid-scope"


@pytest.mark.parametrize(("form", "content"), [("pdf", b"%PDF \xff\x00"), ("html", "<p>ł</p>".encode())])
def test_the_bytes_survive_being_stored(form: str, content: bytes) -> None:
    document = ReportDocument.of("log", "Log", form, "ann", content)
    assert decode(msgspec.json.encode(document)).content == content
    assert (document.digest, document.size) == (f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))


def test_an_agent_is_told_where_it_is_and_others_get_it() -> None:
    document = ReportDocument.of("log", "Log", "markdown", "ann", b"# Log")
    assert document.notice("doc-1")["fetch"] == {"method": "FETCH", "path": "/documents/doc-1"}
    letter = document.letter("doc-1")
    assert (letter["file_name"], letter["text"], letter["content_type"]) == (
        *("doc-1.md", "# Log", "text/markdown; charset=utf-8"),
    )
    assert "fetch" not in letter


METHODS = ("REPORT", "LOG", "PURCHASE")


async def ask(bench: StatefulBench, agent: str = AGENT, **fields: Any) -> Any:
    given = {"report_type": "log", "scope": "all", "recipient": AGENT, **fields}
    return await bench.send("REPORT", "/", given, agent=agent)


async def log(bench: StatefulBench, event: str, agent: str = AGENT) -> None:
    await bench.send("LOG", "/", {"event_type": event, "data": {"n": 1}, "severity": "warning"}, agent=agent)


async def fetch(bench: StatefulBench, document_id: str, agent: str = AGENT) -> Response:
    """Fetch a document, which may be anything but JSON."""
    headers = {"agent-id": agent, "accept": "application/octet-stream"}
    request = Request("FETCH", f"/documents/{document_id}", "", headers, b"", bench.connection)
    answer = bench.bench.dispatcher(request)
    return answer if isinstance(answer, Response) else await answer


@pytest.mark.requirement("METHODS-7.5-2", "METHODS-7.5-3")
@rows(
    "form, content_type, start",
    ("json", "application/json", b"{"),
    ("html", "text/html; charset=utf-8", b"<!doctype html>"),
    ("markdown", "text/markdown; charset=utf-8", b"# "),
    ("pdf", "application/pdf", b"%PDF-"),
)
async def test_a_report_is_stored_in_its_format(form: str, content_type: str, start: bytes) -> None:
    async with keeping(methods=METHODS) as bench:
        await log(bench, "door opened")
        receipt = (await ask(bench, format=form)).json["result"]
        found = await fetch(bench, receipt["document_id"])
        assert (found.status, found.header("Content-Type")) == (200, content_type)
        assert found.body.startswith(start)
        assert (receipt["digest"], receipt["bytes"]) == (
            f"sha256:{hashlib.sha256(found.body).hexdigest()}",
            len(found.body),
        )
        assert (receipt["format"], receipt["recipient"]) == (form, AGENT)


async def test_only_what_the_caller_has_recorded_is_reported() -> None:
    async with keeping(methods=METHODS) as bench:
        await log(bench, "mine")
        await log(bench, "theirs", FRIEND)
        receipt = (await ask(bench, format="markdown")).json["result"]
        body = (await fetch(bench, receipt["document_id"])).body
        assert b"mine" in body
        assert b"theirs" not in body


async def test_a_document_is_for_the_caller_and_the_recipient() -> None:
    async with keeping(methods=METHODS) as bench:
        document_id = (await ask(bench, recipient=FRIEND)).json["result"]["document_id"]
        assert [(await fetch(bench, document_id, agent)).status for agent in (AGENT, FRIEND, "c" * 64)] == [
            200,
            200,
            404,
        ]
        assert (await fetch(bench, "doc-0")).status == 404


@pytest.mark.requirement("METHODS-7.5-7")
async def test_an_agent_finds_its_report_in_its_inbox_and_a_principal_fetches_its_own() -> None:
    async with keeping(methods=METHODS) as bench:
        receipt = (await ask(bench, recipient=FRIEND)).json["result"]
        assert receipt["status"] == "delivered"
        [message] = await bench.store.read(ListRecords("message", FRIEND))
        content = message.content()
        assert (content["kind"], content["content"]["document_id"]) == ("report", receipt["document_id"])
        assert (await ask(bench, recipient="sales leadership")).json["result"]["status"] == "stored"


async def test_an_address_outside_is_refused_where_nothing_is_delivered() -> None:
    async with keeping(methods=METHODS) as bench:
        assert (await ask(bench, recipient="https://reports.example/in")).refusal == (403, "address-not-listed")
        assert await bench.store.read(ListRecords("report")) == []
        assert (await bench.store.do(ClaimOutbox("delivery", 10, 1.0))) == [[]]


@pytest.mark.requirement("METHODS-7.5-4")
@rows(
    "fields, status, code",
    ({"report_type": "weather"}, 422, "unknown-report-type"),
    ({"scope": "yesterday"}, 400, "invalid-scope"),
    ({"scope": {"ids": 3}}, 400, "invalid-scope"),
    ({"scope": {"x": "y" * 1_000_000}}, 400, "invalid-scope"),
    ({"scope": "x" * 1_000_000}, 422, "input-validation-failed"),
    ({"report_type": "data", "scope": {"data": "secrets"}}, 400, "invalid-scope"),
    ({"report_type": "costs", "scope": "7d"}, 400, "invalid-scope"),
    ({"scope": {"filters": {"severity": "info"}}}, 400, "invalid-scope"),
    ({"format": "docx"}, 422, "input-validation-failed"),
    ({"recipient": "a\nb"}, 422, "input-validation-failed"),
)
async def test_a_report_that_cannot_be_made_is_refused(fields: dict[str, Any], status: int, code: str) -> None:
    async with keeping(methods=METHODS) as bench:
        reply = await ask(bench, **fields)
        assert (reply.status, reply.error["code"]) == (status, code), reply.json
        assert await bench.store.read(ListRecords("report")) == []


@pytest.mark.requirement("METHODS-7.5-4")
async def test_without_typst_pdf_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.reports.methods.has_typst", lambda: False)
    async with keeping(methods=METHODS) as bench:
        assert (await ask(bench, format="pdf")).refusal == (503, "format-not-available")


async def test_a_report_that_is_too_large_asks_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.reports.methods.MOST_BYTES", 10)
    async with keeping(methods=METHODS) as bench:
        assert (await ask(bench)).error["code"] == "invalid-scope"


async def test_an_agent_has_a_bounded_number_of_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.reports.methods.MOST_KEPT", 1)
    async with keeping(methods=METHODS) as bench:
        assert [(await ask(bench)).status for _ in range(2)] == [200, 429]


async def test_reports_of_one_agent_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_turns", FairSemaphore(1, most=10, most_of_one=1))
    async with keeping(methods=METHODS) as bench:
        replies = await asyncio.gather(*(ask(bench, format="pdf") for _ in range(3)), ask(bench, agent=FRIEND))
    assert sorted(reply.status for reply in replies[:3]) == [200, 200, 503]
    assert replies[3].status == 200


async def test_purchases_are_reported_with_exact_amounts() -> None:
    async with keeping(**selling(methods=METHODS), document=ledger()) as bench:
        await buy(bench)
        document_id = (await ask(bench, report_type="purchases")).json["result"]["document_id"]
        body = (await fetch(bench, document_id)).body
        assert b'"Amount": "10.00"' in body
        assert b'"settled, EUR": 10.0' in body


async def test_an_address_outside_receives_the_document() -> None:
    settings = DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1",))
    async with (
        serving(always(200), tls=None) as web,
        keeping(methods=METHODS, document=ServerDocument(extension_tables={"delivery": settings})) as bench,
    ):
        receipt = (await ask(bench, format="markdown", recipient=f"http://127.0.0.1:{web.port}/in")).json["result"]
        assert receipt["status"] == "queued"
        async with asyncio.timeout(20):
            while (record := (await bench.store.read(ListRecords("report")))[0]).state != "delivered":
                await asyncio.sleep(0.01)
        [asked] = web.asked
        content = json.loads(asked.body)["content"]
        assert (content["document_id"], content["digest"]) == (record.record_id, receipt["digest"])
        assert content["text"].startswith("# test")
