"""REPORT writes what the caller has recorded, in the format it asks for, and delivers it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
from tests.agent.discovery.web import always, serving
from tests.payments import buy, ledger
from tests.service import AGENT
from tests.stateful import StatefulBench, keeping

from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.reports import methods as module
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.runtime.concurrency import FairSemaphore
from bespeak.state.store.commands.messages import ClaimOutbox
from bespeak.state.store.commands.records import ListRecords

pytestmark = pytest.mark.anyio

METHODS = ("REPORT", "LOG", "PURCHASE")
FRIEND = "b" * 64


async def report(bench: StatefulBench, agent: str = AGENT, **fields: Any) -> Any:
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
@pytest.mark.parametrize(
    ("form", "content_type", "start"),
    [
        ("json", "application/json", b"{"),
        ("html", "text/html; charset=utf-8", b"<!doctype html>"),
        ("markdown", "text/markdown; charset=utf-8", b"# "),
        ("pdf", "application/pdf", b"%PDF-"),
    ],
)
async def test_a_report_is_stored_in_its_format(form: str, content_type: str, start: bytes) -> None:
    async with keeping(methods=METHODS) as bench:
        await log(bench, "door opened")
        receipt = (await report(bench, format=form)).json["result"]
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
        receipt = (await report(bench, format="markdown")).json["result"]
        body = (await fetch(bench, receipt["document_id"])).body
        assert b"mine" in body
        assert b"theirs" not in body


async def test_a_document_is_for_the_caller_and_the_recipient() -> None:
    async with keeping(methods=METHODS) as bench:
        document_id = (await report(bench, recipient=FRIEND)).json["result"]["document_id"]
        assert [(await fetch(bench, document_id, agent)).status for agent in (AGENT, FRIEND, "c" * 64)] == [
            200,
            200,
            404,
        ]
        assert (await fetch(bench, "doc-0")).status == 404


async def test_an_agent_finds_the_report_in_its_inbox() -> None:
    async with keeping(methods=METHODS) as bench:
        receipt = (await report(bench, recipient=FRIEND)).json["result"]
        assert receipt["status"] == "delivered"
        [message] = await bench.store.read(ListRecords("message", FRIEND))
        content = message.content()
        assert (content["kind"], content["content"]["document_id"]) == ("report", receipt["document_id"])


async def test_a_principal_fetches_what_is_for_it() -> None:
    async with keeping(methods=METHODS) as bench:
        assert (await report(bench, recipient="sales leadership")).json["result"]["status"] == "stored"


async def test_an_address_outside_is_refused_where_nothing_is_delivered() -> None:
    async with keeping(methods=METHODS) as bench:
        reply = await report(bench, recipient="https://reports.example/in")
        assert (reply.status, reply.error["code"]) == (403, "address-not-listed")
        assert await bench.store.read(ListRecords("report")) == []
        claimed = await bench.store.do(ClaimOutbox("delivery", 10, 1.0))
        assert claimed == [[]]


@pytest.mark.requirement("METHODS-7.5-4")
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"report_type": "weather"}, 422, "unknown-report-type"),
        ({"scope": "yesterday"}, 400, "invalid-scope"),
        ({"scope": {"ids": 3}}, 400, "invalid-scope"),
        ({"scope": {"x": "y" * 1_000_000}}, 400, "invalid-scope"),
        ({"scope": "x" * 1_000_000}, 422, "input-validation-failed"),
        ({"report_type": "data", "scope": {"data": "secrets"}}, 400, "invalid-scope"),
        ({"report_type": "costs", "scope": "7d"}, 400, "invalid-scope"),
        ({"format": "docx"}, 422, "input-validation-failed"),
        ({"recipient": "a\nb"}, 422, "input-validation-failed"),
    ],
)
async def test_a_report_that_cannot_be_made_is_refused(fields: dict[str, Any], status: int, code: str) -> None:
    async with keeping(methods=METHODS) as bench:
        reply = await report(bench, **fields)
        assert (reply.status, reply.error["code"]) == (status, code), reply.json
        assert await bench.store.read(ListRecords("report")) == []


async def test_without_typst_pdf_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.reports.methods.has_typst", lambda: False)
    async with keeping(methods=METHODS) as bench:
        reply = await report(bench, format="pdf")
        assert (reply.status, reply.error["code"]) == (503, "format-not-available")


async def test_a_report_that_is_too_large_asks_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.reports.methods.MOST_BYTES", 10)
    async with keeping(methods=METHODS) as bench:
        assert (await report(bench)).error["code"] == "invalid-scope"


async def test_an_agent_has_a_bounded_number_of_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.reports.methods.MOST_KEPT", 1)
    async with keeping(methods=METHODS) as bench:
        assert [(await report(bench)).status for _ in range(2)] == [200, 429]


async def test_reports_of_one_agent_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_turns", FairSemaphore(1, most=10, most_of_one=1))
    async with keeping(methods=METHODS) as bench:
        replies = await asyncio.gather(*(report(bench, format="pdf") for _ in range(3)), report(bench, agent=FRIEND))
    assert sorted(reply.status for reply in replies[:3]) == [200, 200, 503]
    assert replies[3].status == 200


async def test_purchases_are_reported_with_exact_amounts() -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        await buy(bench)
        document_id = (await report(bench, report_type="purchases")).json["result"]["document_id"]
        body = (await fetch(bench, document_id)).body
        assert b'"Amount": "10.00"' in body
        assert b'"settled, EUR": 10.0' in body


async def test_an_address_outside_receives_the_document() -> None:
    settings = DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1",))
    async with (
        serving(always(200), tls=None) as web,
        keeping(methods=METHODS, document=ServerDocument(delivery=settings)) as bench,
    ):
        receipt = (await report(bench, format="markdown", recipient=f"http://127.0.0.1:{web.port}/in")).json["result"]
        assert receipt["status"] == "queued"
        async with asyncio.timeout(20):
            while (record := (await bench.store.read(ListRecords("report")))[0]).state != "delivered":
                await asyncio.sleep(0.01)
        [asked] = web.asked
        content = json.loads(asked.body)["content"]
        assert (content["document_id"], content["digest"]) == (record.record_id, receipt["digest"])
        assert content["text"].startswith("# test")
