"""The page that a link opens: it is plain HTML, changes nothing when it is looked at, and takes one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from tests.cases import rows
from tests.messaging import sent
from tests.people import URL, Reachable, reachable
from tests.stateful import audited_backend

from bespeak.app.server.http_face import mount_answers
from bespeak.app.server.serving import WebApplications
from bespeak.app.server.settings import HttpAssembly
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.faces.http.asgi import Receive, Scope, Send
from bespeak.state.identity.settings import AuthSettings

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
HOSTILE = "<script>alert(1)</script>"


@asynccontextmanager
async def paged() -> AsyncIterator[tuple[Reachable, httpx.AsyncClient]]:
    """Serve the page of a service whose front desk has been sent an alert."""
    async with reachable(url=None, methods=("ALERT", "CHECK")) as desk:
        web = replace(HttpSettings(), url=URL)
        assembly = HttpAssembly(desk.bench.bench.dispatcher, web, AuthSettings())
        places = WebApplications(assembly, McpSettings(), A2aSettings()).places
        assert places is not None

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await places[scope["path"]](scope, receive, send)

        await sent(desk.bench, "ALERT", {"recipient": "front-desk", "message": HOSTILE, "severity": "high"})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=URL) as client:
            yield desk, client


async def test_get_shows_a_form_and_changes_nothing_and_post_answers_once() -> None:
    async with paged() as (desk, client):
        link = f"/acknowledge?token={await desk.token()}"
        for _ in range(2):  # scanners of mail follow links
            page = await client.get(link)
            assert (page.status_code, "<button" in page.text) == (200, True)
        assert HOSTILE not in page.text
        assert "&lt;script&gt;" in page.text
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert (page.headers["referrer-policy"], page.headers["cache-control"]) == ("no-referrer", "no-store")
        assert (await client.head(link)).content == b""
        answered = await client.post(link, data={"answer": "accepted"})
        assert (answered.status_code, "Thank you" in answered.text) == (200, True)
        again = await client.post(link, data={"answer": "accepted"})
        assert (again.status_code, "<button" in again.text) == (409, False)


@rows(
    ("query", "status"),
    ("", 404),
    ("?token=x.y", 404),
    ("?token=%ff", 404),
    ("?" + "a=1&" * 50, 404),
    (f"?token={'a' * 5000}", 404),
)
async def test_a_link_that_is_wrong_gets_a_clear_page(query: str, status: int) -> None:
    async with paged() as (_, client):
        for method in ("GET", "POST"):
            page = await client.request(method, f"/acknowledge{query}", content=b"answer=accepted")
            assert (page.status_code, "This link is not valid" in page.text) == (status, True)


async def test_other_methods_and_large_forms_are_refused_and_any_origin_is_taken() -> None:
    async with paged() as (desk, client):
        link = f"/acknowledge?token={await desk.token()}"
        assert (await client.put(link)).status_code == 405
        assert (await client.post(link, content=b"answer=accepted&reason=" + b"x" * 10_000)).status_code == 413
        assert (await client.get(link)).status_code == 200
        # A page without a referrer has the origin null; the token is all that counts.
        assert (await client.post(link, data={"answer": "accepted"}, headers={"origin": "null"})).status_code == 200


def test_the_page_is_beside_the_prefix_of_the_public_url() -> None:
    web = replace(HttpSettings(), url=f"{URL}/rooms")

    class Links:
        url, path = None, "/acknowledge"

    class Answers:
        links = Links()

    assembly = HttpAssembly(None, web, AuthSettings())  # type: ignore[arg-type] # the page needs no dispatcher
    places = mount_answers(assembly, Answers())  # type: ignore[arg-type] # only its links are used
    assert {"/acknowledge", "/rooms/acknowledge"} <= set(places)
    assert Answers.links.url == f"{URL}/rooms"
