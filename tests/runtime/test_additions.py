"""Endpoints added and removed while a server runs, on every face, in every document and in every process."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service import Bench, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.http_face import make_face
from bespeak.contract.handler import RegisteredFunction
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError, ContractError
from bespeak.protocol.exchange.headers import MEDIA_AGIS
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.store.commands.endpoints import DropEndpoint, PutEndpoint
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
FIND = replace(
    make_endpoint("FIND", "/pools/{pool}", echo, properties={"pool": {"type": "string"}}),
    handler=RegisteredFunction(function="tests.service.echo"),
)
WEB = ("/", "/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/llms.txt")


async def read_documents(bench: Bench) -> dict[str, tuple[str, str | None]]:
    """Return every document of both faces with its ETag."""
    found = {}
    for name, target, headers in (
        ("manifest", "/", {}),
        ("agis", "/", {"accept": MEDIA_AGIS}),
        ("inventory", "/methods", {}),
        ("capabilities", "/", {}),
    ):
        reply = bench.send("DESCRIBE" if name == "capabilities" else "DISCOVER", target, **headers)
        found[name] = (reply.response.body.decode(), reply.header("ETag"))
    async with browse(bench.dispatcher) as http:
        for path in WEB:
            answer = await http.get(path)
            found[path] = (answer.text, answer.headers.get("etag"))
    return found


_FACES: dict[Dispatcher, Any] = {}


@asynccontextmanager
async def browse(dispatcher: Dispatcher) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client of the HTTP face of a server, which outlives its changes."""
    face = _FACES.setdefault(dispatcher, make_face(dispatcher, HttpSettings()))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url="http://rooms.test") as http:
        yield http


@pytest.mark.requirement("API-8.3-4")
async def test_an_added_endpoint_is_on_both_faces_and_in_every_document_until_it_is_removed() -> None:
    bench = build(BOOK)
    before = await read_documents(bench)
    await bench.server.add_endpoint(FIND)
    during = await read_documents(bench)
    updated = [json.loads(documents["manifest"][0])["server"]["updated"] for documents in (before, during)]
    assert updated[0] < updated[1]
    for name, (text, etag) in during.items():
        named = '"FIND"' if name == "/.well-known/agis.json" else "/pools"  # the summary lists methods alone
        assert named in text, name
        assert named not in before[name][0], name
        assert etag is None or etag != before[name][1], name
    assert bench.send("FIND", "/pools/3").json == {"pool": "3"}
    assert bench.send("BOOK", "/pools/3").error["allowed_methods_for_path"] == ["FIND"]
    bench.connection = Connection()
    assert "FIND" in (bench.send("DISCOVER", "/methods").header("Supported-Methods") or "").split(", ")
    async with browse(bench.dispatcher) as http:
        assert (await http.get("/pools/3:find")).json() == {"pool": "3"}
        assert (await http.post("/pools/3")).json()["routes"] == ["/pools/3:find"]
        await bench.server.remove_endpoint("FIND", FIND.path)
        assert (await http.get("/pools/3:find")).status_code == 404
    assert bench.send("FIND", "/pools/3").status == 404
    assert bench.send("BOOK", "/room", {}).status == 200
    after = await read_documents(bench)
    assert all("/pools" not in text for text, _ in after.values())
    assert after["inventory"] == before["inventory"]
    # What has a time of change in it says that there was one.
    assert {name for name in after if after[name] != before[name]} <= {"manifest", "/.well-known/ai"}


async def test_a_built_in_endpoint_returns_when_its_replacement_is_removed() -> None:
    bench = build()
    own = make_endpoint("QUERY", "/", lambda context: {"own": True})
    await bench.server.add_endpoint(own)
    assert bench.send("QUERY", "/").json == {"own": True}
    await bench.server.remove_endpoint("QUERY", "/")
    assert bench.send("QUERY", "/", {"intent": "x"}).error["missing"] == "resources to search"


@pytest.mark.parametrize(
    "endpoint",
    [BOOK, replace(FIND, path="/rooms/book"), replace(FIND, method="FROB"), replace(FIND, path="/pools/{a}/{a}")],
)
@pytest.mark.requirement("API-13.2-14")
async def test_an_invalid_endpoint_is_refused_and_changes_nothing(endpoint: Any) -> None:
    bench = build(BOOK)
    routes = bench.routes
    with pytest.raises(ContractError) as refused:
        await bench.server.add_endpoint(endpoint)
    assert refused.value.findings
    assert bench.routes is routes


async def test_an_endpoint_cannot_be_added_twice() -> None:
    bench = build()
    await bench.server.add_endpoint(FIND)
    with pytest.raises(ContractError):
        await bench.server.add_endpoint(replace(FIND, path="/pools/{other}"))


async def test_endpoints_of_the_configuration_are_not_removed() -> None:
    bench = build(BOOK)
    with pytest.raises(ContractError, match="not added at run time"):
        await bench.server.remove_endpoint("BOOK", "/room")
    assert bench.send("BOOK", "/room", {}).status == 200


async def test_a_call_finishes_on_the_table_it_was_routed_with() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(context: Any) -> dict[str, Any]:
        begun.set()
        await go_on.wait()
        return {"done": True}

    bench = build()
    await bench.server.add_endpoint(make_endpoint("FETCH", "/slow", wait))
    answer = bench.dispatcher(Request("FETCH", "/slow", "", {}, b"", Connection()))
    assert inspect.iscoroutine(answer)
    task = asyncio.ensure_future(answer)
    await begun.wait()
    await bench.server.remove_endpoint("FETCH", "/slow")
    assert bench.send("FETCH", "/slow").status == 404
    go_on.set()
    response = await task
    assert isinstance(response, Response)
    assert (response.status, response.body) == (200, b'{"done":true}')


async def test_a_live_function_cannot_be_stored() -> None:
    async with keeping() as bench:
        with pytest.raises(ConfigError, match="import its function"):
            await bench.bench.server.add_endpoint(make_endpoint("FETCH", "/pool", echo))


@pytest.mark.parametrize("half", [{"description": "\ud800"}, {"input_schema": {"title": "\ud800"}}])
async def test_half_a_surrogate_pair_is_refused_before_it_is_stored(half: Any) -> None:
    async with keeping() as bench:
        with pytest.raises(ContractError, match=r"FIND /pools/\{pool\} cannot be added"):
            await bench.bench.server.add_endpoint(replace(FIND, **half))
        assert (await bench.send("FIND", "/pools/1", agent=None)).status == 404


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("bespeak.state.store.sqlite.POLL_SECONDS", 0.02)
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_dsn"))
    return str(tmp_path / "store.db")


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


async def test_processes_that_share_a_store_serve_the_same_and_keep_it(place: str) -> None:
    one, other = open_store(place), open_store(place)
    async with keeping(BOOK, store=one) as first, keeping(BOOK, store=other) as second:
        await first.bench.server.add_endpoint(FIND)
        assert (await first.send("FIND", "/pools/1", agent=None)).status == 200
        await eventually(lambda: FIND.key in second.bench.routes.endpoints)
        assert (await second.send("FIND", "/pools/1", agent=None)).json == {"pool": "1"}
        documents = [await read_documents_of(bench) for bench in (first, second)]
        assert documents[0] == documents[1]
        await second.bench.server.add_endpoint(replace(FIND, path="/saunas/{pool}"))
        await eventually(lambda: ("FIND", "/saunas/{pool}") in first.bench.routes.endpoints)
        await first.bench.server.remove_endpoint("FIND", "/saunas/{pool}")
        await eventually(lambda: ("FIND", "/saunas/{pool}") not in second.bench.routes.endpoints)
    async with keeping(BOOK, store=open_store(place)) as again:
        assert (await again.send("FIND", "/pools/1", agent=None)).status == 200
        await again.bench.server.remove_endpoint("FIND", FIND.path)
        assert (await again.send("FIND", "/pools/1", agent=None)).status == 404


async def read_documents_of(bench: Any) -> list[Any]:
    replies = [await bench.send("DISCOVER", target, agent=None) for target in ("/", "/methods")]
    return [(reply.response.body, reply.header("ETag")) for reply in replies]


async def test_an_endpoint_is_checked_against_concurrent_additions(place: str) -> None:
    one, other = open_store(place), open_store(place)
    async with keeping(store=one) as first, keeping(store=other) as second:
        added = await asyncio.gather(
            first.bench.server.add_endpoint(FIND),
            second.bench.server.add_endpoint(replace(FIND, path="/pools/{name}")),
            second.bench.server.add_endpoint(replace(FIND, path="/saunas")),
            return_exceptions=True,
        )
        assert [type(result) for result in added].count(ContractError) == 1
        await eventually(lambda: len(added_to(first)) == len(added_to(second)) == 2)
        assert added_to(first) == added_to(second)
        assert "/saunas" in added_to(first)


def added_to(bench: StatefulBench) -> list[str]:
    return [path for (_, path), endpoint in bench.bench.routes.endpoints.items() if not endpoint.builtin]


async def test_an_endpoint_that_became_invalid_is_reported_and_not_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(store=open_store(place)) as bench:
        await bench.bench.server.add_endpoint(FIND)
    own = make_endpoint("FIND", "/pools/{id}", echo, properties={"id": {}})
    async with keeping(own, store=open_store(place)) as bench:
        assert (await bench.send("FIND", "/pools/1", agent=None)).json == {"id": "1"}
        assert "the endpoint FIND /pools/{pool} in the store is not served" in caplog.text
        await bench.bench.server.remove_endpoint("FIND", FIND.path)
    async with keeping(own, store=open_store(place)) as bench:
        await bench.store.do(PutEndpoint("FIND", "/x", "[]", 2))
        await eventually(lambda: "the endpoint FIND /x in the store is not served" in caplog.text)
        await bench.store.do(DropEndpoint("FIND", "/x", 3))
