"""A service inside another application, with and without a lifespan."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from tests.cases import rows
from tests.faces.mcp.tools import modern
from tests.process import ROOT

import bespeak
from bespeak.app.server.mounted import MountedService
from bespeak.app.server.target import load_app
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError

KEY = {"Idempotency-Key": "k-1", "Agent-ID": "a" * 64}


def make_app() -> bespeak.App:
    policies = bespeak.Policies()
    app = bespeak.App(
        "Rooms", server_id="rooms.example", operator="Acme", contact="ops@acme.example", policies=policies
    )
    counted: list[int] = []

    @app.endpoint("BOOK", "/room/{room_id}", impact="irreversible", confidence=1.0)
    async def book_room(room_id: str) -> dict[str, Any]:
        """Reserve a room.

        Outcome: The room is reserved.
        """
        await asyncio.sleep(0)
        counted.append(1)
        return {"room_id": room_id, "count": len(counted)}

    return app


@pytest.mark.anyio
async def test_a_server_s_lifespan_opens_and_closes_the_store(tmp_path: Path) -> None:
    service = bespeak.asgi(make_app(), store=str(tmp_path / "rooms.db"))
    with TestClient(service) as client:
        first = client.post("/room/7:book", headers=KEY)
        again = client.post("/room/7:book", headers=KEY)
    assert (first.status_code, first.json()) == (200, {"room_id": "7", "count": 1})
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")


APP = make_app()


def _host(service: MountedService, lifespan: Any = None) -> Starlette:
    routes = [Route("/own", lambda _: PlainTextResponse("own")), Mount("/rooms", service)]
    return Starlette(routes=routes, lifespan=lifespan)


@pytest.mark.anyio
async def test_mounted_without_lifespan_it_starts_with_the_first_request(tmp_path: Path) -> None:
    service = bespeak.asgi(make_app(), store=str(tmp_path / "rooms.db"))
    transport = httpx.ASGITransport(_host(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        replies = await asyncio.gather(*(client.post("/rooms/room/a%2Fb:book", headers=KEY) for _ in range(5)))
        assert {reply.status_code for reply in replies} <= {200, 409}
        assert (await client.post("/rooms/room/a%2Fb:book", headers=KEY)).json() == {"room_id": "a/b", "count": 1}
        assert (await client.get("/own")).text == "own"
    await service.stop()


def test_mounted_in_a_host_that_holds_it_open_it_ends_with_the_host(tmp_path: Path) -> None:
    service = bespeak.asgi(make_app(), store=str(tmp_path / "rooms.db"))
    seen = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield
        seen.append("closed")

    for _ in range(2):  # a host may be started again in one process
        with TestClient(_host(service, lifespan)) as client:
            assert client.post("/rooms/room/7:book", headers=KEY).json() == {"room_id": "7", "count": 1}
    assert seen == ["closed", "closed"]


def test_a_client_with_a_loop_for_each_request_is_served_and_belief_in_callers_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = TestClient(bespeak.asgi(make_app(), store=str(tmp_path / "rooms.db")))
    assert client.post("/room/7:book", headers=KEY).json()["count"] == 1
    assert client.post("/room/7:book", headers=KEY).headers["idempotency-replayed"] == "true"
    with TestClient(bespeak.asgi(make_app())):
        pass
    assert "callers are not authenticated" in caplog.text


def test_a_store_that_cannot_be_opened_keeps_the_server_from_starting_or_is_503(tmp_path: Path) -> None:
    service = bespeak.asgi(make_app(), store=str(tmp_path / "nowhere" / "rooms.db"))
    messages = iter([{"type": "lifespan.startup"}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(service({"type": "lifespan"}, receive, send))
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert "does not exist" in sent[0]["message"]
    place = tmp_path / "nowhere" / "rooms.db"
    client = TestClient(bespeak.asgi(make_app(), store=str(place)))
    refused = client.post("/room/7:book", headers=KEY)
    assert (refused.status_code, refused.json()["code"]) == (503, "store-unavailable")
    assert "nowhere" not in refused.text
    place.parent.mkdir()
    assert client.post("/room/7:book", headers=KEY).status_code == 200


def test_paths_names_and_keywords_are_targets_and_settings(tmp_path: Path) -> None:
    module = tmp_path / "rooms_of_a_file.py"
    module.write_text("from tests.app.server.test_mounted import make_app\n\nrooms = make_app()\n")
    for target in (f"{module}:rooms", "rooms_of_a_file:rooms"):
        with TestClient(bespeak.asgi(target, store="memory")) as client:
            assert client.post("/room/7:book").status_code == 200
    service = bespeak.asgi(make_app(), url="https://rooms.example", cors=["https://shop.example"])
    with TestClient(service) as client:
        reply = client.post("/room/7:book", headers={"Origin": "https://shop.example"})
        assert reply.headers["access-control-allow-origin"] == "https://shop.example"
        apis = client.post("/:discover").json()["apis"]
        assert apis[0]["http_documentation"] == "https://rooms.example/openapi.json"
    with pytest.raises(ConfigError, match="has no key 'colour'"):
        bespeak.asgi(make_app(), colour="red")


@rows(
    "wrong",
    {"cors": "https://*.shop.example"},
    {"cors": ["shop.example"]},
    {"url": "rooms.example"},
    {"trusted_proxies": "*"},
)
def test_a_keyword_is_read_as_the_key_of_a_file_is(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"`{next(iter(wrong))}`"):
        bespeak.asgi(make_app(), **wrong)


def test_an_app_has_its_callers_proven_by_the_file_beside_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    (tmp_path / "bespeak.toml").write_text(
        '[server]\napp = "tests.app.server.test_mounted:APP"\n[auth]\nmodes = ["signed"]\n[store]\nplace = "memory"\n'
    )
    with TestClient(bespeak.asgi(tmp_path)) as client:
        assert client.post("/room/7:book", headers=KEY).status_code == 401
        assert client.get("/.well-known/ai").json()["auth"]["header"] == "Agent-Signature"
    assert "believed" not in caplog.text


@pytest.mark.process
def test_uvicorn_alone_serves_it(tmp_path: Path) -> None:
    (tmp_path / "rooms_for_uvicorn.py").write_text(
        "import bespeak\nfrom tests.app.server.test_mounted import make_app\n\n"
        f"web = bespeak.asgi(make_app(), store={str(tmp_path / 'rooms.db')!r})\n"
    )
    command = [sys.executable, "-m", "uvicorn", "rooms_for_uvicorn:web", "--port", "0", "--app-dir", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stderr is not None
            told = next(line for line in process.stderr if "running on" in line)
            found = re.search(r"http://127\.0\.0\.1:\d+", told)
            first = httpx.post(f"{found[0]}/room/7:book", headers=KEY)
            again = httpx.post(f"{found[0]}/room/7:book", headers=KEY)
            assert (first.json()["count"], again.headers["idempotency-replayed"]) == (1, "true")
            process.terminate()
            assert "Finished server process" in process.stderr.read()
        finally:
            process.kill()


@dataclass
class User:
    name: str


@dataclass
class UserInDb(User):
    password_hash: str = "hunter2"


@pytest.mark.anyio
async def test_no_face_sends_a_field_that_the_return_type_lacks(tmp_path: Path) -> None:
    app = make_app()

    @app.endpoint("FETCH", "/user", impact="informational", confidence=1.0)
    def load_user() -> User:
        """Load the user.

        Outcome: The user is returned.
        """
        return UserInDb("Ada")

    @app.endpoint("FETCH", "/nobody", impact="informational", confidence=1.0)
    def load_nobody() -> User:
        """Load nobody.

        Outcome: Nobody is returned.
        """
        return None  # type: ignore[return-value]

    document = ServerDocument(mcp=McpSettings(enabled=True), a2a=A2aSettings(enabled=True))
    service = MountedService(replace(load_app(app, tmp_path), document=document), "memory", HttpSettings())
    headers, call = modern("tools/call", name="fetch_user", arguments={})
    _, wrong = modern("tools/call", name="fetch_nobody", arguments={})
    parts = [{"data": {"skill": "fetch_user"}}]
    task = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": task}
    async with service.running():
        transport = httpx.ASGITransport(app=cast("Any", service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            web = await client.get("/user:fetch")
            tool = await client.post("/mcp", json=call, headers=headers)
            skill = await client.post("/a2a", json=message, headers={"A2A-Version": "1.0"})
            lost = await client.get("/nobody:fetch")
            missing = await client.post("/mcp", json=wrong, headers={**headers, "Mcp-Name": "fetch_nobody"})
    assert web.json() == tool.json()["result"]["structuredContent"] == {"name": "Ada"}
    assert '{"name":"Ada"}' in skill.text.replace(" ", "")
    assert all("hunter2" not in answer.text for answer in (web, tool, skill))
    assert (lost.status_code, missing.json()["result"]["isError"]) == (500, True)
