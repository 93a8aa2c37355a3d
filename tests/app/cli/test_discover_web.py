"""Test `bespeak discover`, `call`, `diff` and `export` with web services."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.client.faces import served
from tests.agent.discovery.web import Web, always, at, serving
from tests.documents.ai.test_document import FLIGHTS
from tests.process import bespeak

pytestmark = pytest.mark.process

SITE: dict[str, Any] = {
    "/.well-known/ai": always(200, {**FLIGHTS, "aiendpoint": "1.1"}, TDM_Reservation="1"),
    "/api/flights": {"flights": [{"id": "LX1"}]},
}


@contextmanager
def hosted(opener: Any) -> Iterator[Any]:
    """Run an asynchronous context manager in a thread."""
    started, ended, found = threading.Event(), threading.Event(), []

    async def serve() -> None:
        async with opener as value:
            found.append(value)
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    try:
        yield found[0]
    finally:
        ended.set()
        thread.join()


@contextmanager
def site(pages: dict[str, Any] | None = None) -> Iterator[tuple[Web, str]]:
    with hosted(serving(at(SITE if pages is None else pages), tls=False)) as web:
        yield web, f"http://127.0.0.1:{web.port}"


def run(*arguments: str, cache: Path | None = None, **env: str) -> Any:
    return bespeak(*arguments, env={"BESPEAK_CACHE": str(cache) if cache else "off", **env})


def test_web_service_is_summarized() -> None:
    with site() as (_, url):
        done = run("discover", url)
    assert done.returncode == 0, done.stderr
    for part in (
        "Flights  Finds flights.",
        "called by ai-discovery",
        "/.well-known/ai  200, ",
        "authentication apikey in X-API-Key",
        "60 requests per minute",
        "tdm-reservation: 1",
        "producer rules",
        "search_flights  GET /api/flights  Search flights between two airports",
        "from: string, required -- airport code",
    ):
        assert part in done.stdout


def test_web_service_is_printed_as_json() -> None:
    with site() as (_, url):
        done = run("discover", url, "--json")
    told = json.loads(done.stdout)
    assert (told["kind"], told["name"], told["auth"]["type"]) == ("ai", "Flights", "apikey")
    assert told["capabilities"][0]["url"] == f"{url}/api/flights"
    assert told["documents"][0]["status"] == 200
    assert "D170" in [finding["rule"] for finding in told["producer_findings"]]


def test_nothing_found_lists_the_requested_documents() -> None:
    with site({}) as (_, url):
        done = run("discover", url)
    assert done.returncode == 1
    assert "/openapi.json  404" in done.stdout
    assert "has no callable service" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("discover", "http://127.0.0.1:1"), "connection refused"),
        (("discover", "http://flights.example"), "--insecure"),
        (("discover", "https://me:pw@flights.example"), "a user name or password"),
        (("discover", "ftp://flights.example"), "is not a supported URI"),
    ],
)
def test_unsupported_address_is_reported(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "pw" not in done.stderr


def test_capability_is_called_by_id_or_by_path(tmp_path: Path) -> None:
    with site() as (web, url):
        by_id = run("call", url, "search_flights", "from=ZRH", cache=tmp_path, BESPEAK_TOKEN="sekret")
        by_place = run("call", url, "GET", "/api/flights", "from=ZRH", "--json")
        wrong = run("call", url, "search_flights", "to=ZRH")
        unknown = run("call", url, "nothing")
    assert json.loads(by_id.stdout) == {"flights": [{"id": "LX1"}]}
    assert json.loads(by_place.stdout)["status"] == 200
    assert (wrong.returncode, unknown.returncode) == (1, 1)
    assert '"from" is a required property' in wrong.stderr
    assert "it offers search_flights" in unknown.stderr
    first = next(asked for asked in web.asked if asked.target.startswith("/api"))
    assert (first.target, first.headers["x-api-key"]) == ("/api/flights?from=ZRH", "sekret")
    assert not any(b"sekret" in file.read_bytes() for file in tmp_path.iterdir())


def test_agtp_over_http_is_used_like_agtp(tmp_path: Path) -> None:
    with hosted(served()) as place:
        url = place.uris["http"]
        shown = run("discover", url)
        called = run("call", url, "FIND", "/rooms/7", "guests:=2")
        refused = run("call", url, "BOOK", "/room", "guests=2")
        same = run("diff", place.uris["agtp"], url)
        written = run("export", "agis", url, "-o", str(tmp_path / "rooms.agis"))
    assert "called by AGTP over HTTP" in shown.stdout
    assert "BOOK" in shown.stdout
    assert json.loads(called.stdout) == {"room_id": "7", "guests": 2}
    assert "422" in refused.stderr
    assert same.returncode == 0, same.stdout + same.stderr
    assert written.returncode == 0, written.stderr
    assert "method: BOOK" in (tmp_path / "rooms.agis").read_text()


def test_service_without_an_agtp_contract_is_not_exported() -> None:
    with site() as (_, url):
        done = run("export", "agis", url)
    assert done.returncode == 1
    assert "bespeak import openapi" in done.stderr


CARD = {
    "name": "Routes",
    "description": "Plans routes.",
    "protocolVersion": "0.3.0",
    "url": "/a2a",
    "securitySchemes": {"a": {"type": "http", "scheme": "bearer"}},
    "skills": [
        {"id": "plan", "name": "Plan", "description": "Plans a route.", "tags": [], "security": [{"a": ["maps:read"]}]}
    ],
}


def test_the_skills_of_an_agent_are_shown_with_doubt_and_are_not_called() -> None:
    with site({"/.well-known/agent-card.json": CARD}) as (_, url):
        shown, called = run("discover", url), run("call", url, "plan")
        data = json.loads(run("discover", url, "--json").stdout)
    assert (shown.returncode, called.returncode) == (0, 2)
    assert "called by messages of A2A, which bespeak does not send" in shown.stdout
    assert f"takes messages at {url}/a2a  JSONRPC 0.3.0\nauthentication bearer" in shown.stdout
    assert "plan  Plans a route.  [no schema, probably " in shown.stdout
    assert "needs maps:read]" in shown.stdout
    assert "Its skills have no schemas, so they cannot be called as endpoints. Use an A2A client." in called.stderr
    assert data["agent"]["skills"][0]["input_schema"] is None
