"""FETCH /documents exists where reports are made, and returns a document as it was made."""

from __future__ import annotations

import pytest
from tests.stateful import keeping

pytestmark = pytest.mark.anyio


async def test_documents_are_there_only_with_report() -> None:
    async with keeping(methods=("LOG",)) as bench:
        assert (await bench.send("FETCH", "/documents/doc-1")).error["code"] == "endpoint-not-found"
    async with keeping(methods=("REPORT",)) as bench:
        assert (await bench.send("FETCH", "/documents/doc-1")).error["code"] == "document-not-found"
        assert (await bench.send("FETCH", "/documents/doc-1", agent=None)).status in (262, 401)


async def test_a_document_is_a_file_for_browsers() -> None:
    async with keeping(methods=("REPORT",)) as bench:
        body = {"report_type": "log", "scope": "all", "recipient": "ann"}
        document_id = (await bench.send("REPORT", "/", body)).json["result"]["document_id"]
        found = await bench.send("FETCH", f"/documents/{document_id}")
        assert found.header("Content-Disposition") == f'attachment; filename="{document_id}.json"'
        assert found.header("X-Content-Type-Options") == "nosniff"
        assert found.json["report_type"] == "log"
