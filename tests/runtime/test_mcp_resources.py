"""Resources: their URIs, types and sizes, and what a caller may see of them."""

from __future__ import annotations

import json

import pytest

from bespeak.protocol.exchange.headers import MEDIA_MANIFEST
from bespeak.runtime.methods.query import Fetch, list_resources, read_resource

pytestmark = pytest.mark.anyio

SERVER = "Rooms.example:8443"
BASE = "bespeak://rooms.example:8443"


def documents(manifest: bytes | None = None, agis: bytes | None = None) -> Fetch:
    async def fetch(media_type: str) -> bytes | None:
        return manifest if media_type == MEDIA_MANIFEST else agis

    return fetch


async def test_documents_have_a_size_and_a_report_has_none_before_it_is_made() -> None:
    found = await list_resources(SERVER, documents(b'{"agtp_version": "1.0"}', b"{}"))
    assert [(entry["uri"], entry.get("size")) for entry in found] == [
        (f"{BASE}/manifest", 23),
        (f"{BASE}/agis", 2),
        (f"{BASE}/lint", None),
    ]


async def test_a_document_that_the_caller_may_not_see_is_not_there() -> None:
    fetch = documents(agis=b"{}")
    assert [entry["name"] for entry in await list_resources(SERVER, fetch)] == ["agis"]
    assert await read_resource(SERVER, f"{BASE}/manifest", fetch) is None
    assert await read_resource(SERVER, f"{BASE}/lint", fetch) is None


async def test_a_report_is_about_the_manifest_that_the_caller_sees() -> None:
    for number in range(2):
        manifest = json.dumps({"agtp_version": str(number), "catalog_version": "9.9.9"}).encode()
        read = await read_resource(SERVER, f"{BASE}/lint", documents(manifest))
        assert read is not None
        assert json.loads(read["text"])["files"] == [f"{BASE}/manifest"]
        assert read["mimeType"] == "application/json"
