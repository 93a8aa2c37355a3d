"""FETCH /documents exists where reports are made, and returns a document as it was made."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from typing import Any

import pytest
from tests.stateful import StatefulBench, keeping

pytestmark = pytest.mark.anyio


async def test_documents_are_there_only_with_report() -> None:
    async with keeping(methods=("LOG",)) as bench:
        assert (await bench.send("FETCH", "/documents/doc-1")).error["code"] == "endpoint-not-found"
    async with keeping(methods=("REPORT",)) as bench:
        assert (await bench.send("FETCH", "/documents/doc-1")).error["code"] == "document-not-found"
        assert (await bench.send("FETCH", "/documents/doc-1", agent=None)).status in (262, 401)


async def made(bench: StatefulBench, form: str) -> dict[str, Any]:
    body = {"report_type": "log", "scope": "all", "recipient": "ann", "format": form}
    receipt: dict[str, Any] = (await bench.send("REPORT", "/", body)).json["result"]
    return receipt


@pytest.mark.parametrize("form", ["json", "pdf"])
async def test_a_document_is_a_member_of_an_object(form: str) -> None:
    async with keeping(methods=("REPORT",)) as bench:
        receipt = await made(bench, form)
        found = (await bench.send("FETCH", f"/documents/{receipt['document_id']}", accept="application/json")).json
        content = found["result"]["text"].encode() if form == "json" else b64decode(found["result"]["base64"])
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == found["result"]["digest"] == receipt["digest"]


async def test_a_document_is_a_file_for_those_who_ask_for_its_type() -> None:
    async with keeping(methods=("REPORT",)) as bench:
        document_id = (await made(bench, "json"))["document_id"]
        found = await bench.send("FETCH", f"/documents/{document_id}", accept="text/html, application/octet-stream;q=1")
        assert found.header("Content-Type") == "application/json"
        assert found.header("Content-Disposition") == f'attachment; filename="{document_id}.json"'
        assert found.header("X-Content-Type-Options") == "nosniff"
        assert found.json["report_type"] == "log"
