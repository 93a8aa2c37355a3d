"""Documents of every face after an endpoint was negotiated, and after it has ended."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.stateful import StatefulBench

from bespeak.app.server.http_face import make_face
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.extensions.negotiation import syntheses
from bespeak.state.store.commands.proposals import PublishProposal

pytestmark = pytest.mark.anyio

WEB = ("/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/llms.txt", "/")
"""Documents of the HTTP face; the last one is the AGIS document."""
LISTING = ("/.well-known/ai", "/openapi.json", "/llms.txt", "/")
"""Those that name every endpoint."""


async def read(bench: StatefulBench) -> dict[str, tuple[str, str]]:
    """Return the text of every document with its ETag, or the version by which a caller notices a change."""
    transport = httpx.ASGITransport(make_face(bench.bench.dispatcher, HttpSettings()))
    found = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://rooms.test") as client:
        for path in WEB:
            reply = await client.get(path)
            assert reply.status_code == 200
            found[path] = (reply.text, reply.headers["etag"])
    for path in ("/", "/methods"):
        reply = await bench.send("DISCOVER", path, agent=None)
        found[f"DISCOVER {path}"] = (str(reply.json), str(reply.header("ETag")))
    manifest = (await bench.send("DISCOVER", "/", agent=None)).json
    found["document_version"] = (str(manifest["endpoints"]), manifest["document_version"])
    called = await bench.send("FIND", "/rooms", {"city": "Rome"})
    found["AGTP-API-Version"] = ("", str(called.header("AGTP-API-Version")))
    return found


def listed(documents: dict[str, tuple[str, str]]) -> set[str]:
    return {name for name, (text, _) in documents.items() if "/lodgings" in text}


def unchanged(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name, (_, tag) in after.items() if before[name][1] == tag} - {"/.well-known/agis.json"}


EVERYWHERE = {*LISTING, "DISCOVER /", "DISCOVER /methods", "document_version"}


async def test_session_scoped_synthesis_is_in_no_document() -> None:
    async with negotiating(persistent=True) as bench:
        before = await read(bench)
        assert (await bench.send("PROPOSE", "/", lodgings())).status == 263
        after = await read(bench)
        assert not listed(after)
        assert {name: tag for name, (_, tag) in after.items()} == {name: tag for name, (_, tag) in before.items()}


async def test_persistent_synthesis_changes_no_document_of_others() -> None:
    async with negotiating(persistent=True) as bench:
        before = await read(bench)
        assert (await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})).status == 263
        assert await read(bench) == before


@pytest.mark.requirement("CORE-2.4-8", "AGIS-2-2")
@pytest.mark.parametrize("end", ["expiry", "release"])
async def test_documents_of_every_face_change_with_a_published_synthesis(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with negotiating(persistent=True) as bench:
        negotiator = bench.bench.server.own_endpoints
        assert negotiator is not None
        before = await read(bench)
        proposed = (await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})).json
        await bench.store.do(PublishProposal(proposed["proposal_id"], 3600.0))
        await negotiator.refresh()
        during = await read(bench)
        assert listed(during) == EVERYWHERE
        assert not unchanged(before, during)
        if end == "expiry":
            later = SimpleNamespace(time=lambda: time.time() + 2 * 86400, monotonic=time.monotonic)
            monkeypatch.setattr(syntheses, "time", later)
            await negotiator.refresh()
        else:
            assert (await bench.send("SUSPEND", "/", {"synthesis_id": proposed["synthesis_id"]})).status == 200
        after = await read(bench)
        assert not listed(after)
        assert not unchanged(during, after)


@pytest.mark.requirement("AGIS-2-2")
async def test_agis_document_marks_what_was_proposed() -> None:
    async with negotiating(persistent=True) as bench:
        await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})
        document = await bench.send("DISCOVER", "/", accept="application/agis")
        marked = {endpoint["path"]: endpoint.get("proposed") for endpoint in document.json["endpoints"]}
        assert (marked["/lodgings"], marked["/rooms"]) == (True, None)
