"""MCP and A2A on the HTTP face, mounted and served: places, credentials, cards and metadata."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from a2a.types import AgentCard, GetTaskRequest
from google.protobuf.json_format import ParseDict
from tests.faces.a2a.agent import calling, connected, output, send, state
from tests.faces.mcp.tools import LEGACY, agree, connected_to, error_in, modern
from tests.process import HOTEL, ROOT, serving
from tests.service import build, echo, make_endpoint

import bespeak
from bespeak.app.server.http_face import make_a2a, mount_mcp, sdk_needed
from bespeak.app.server.serving import WebApplications
from bespeak.app.server.settings import HttpAssembly, plan_settings
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.documents.projections.discovery import SERVER_CARD_TYPE
from bespeak.errors import ConfigError
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.settings import MEMORY, open_store

pytestmark = pytest.mark.anyio


APP = """
from bespeak import App

app = App("Rooms", server_id="rooms.example", operator="Tests", contact="ops@rooms.example")

@app.endpoint("QUERY", "/rooms", impact="informational",
              intent="Find rooms with enough beds.", outcome="The rooms are returned.")
def rooms(beds: int = 1) -> dict[str, list[str]]:
    return {"rooms": ["12"]}
"""
BOOKING = {
    "guest_id": "7f3a0b9c-6f0e-4a54-9f55-3c2d1e0f9a8b",
    "room_id": "101",
    "arrival": "2027-01-01",
    "departure": "2027-01-03",
}


def test_mcp_and_a2a_need_the_http_face_and_their_packages() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'bespeak\[mcp\]'"), sdk_needed():
        raise ModuleNotFoundError("No module named 'mcp'", name="mcp.server")
    with pytest.raises(ModuleNotFoundError), sdk_needed():
        raise ModuleNotFoundError("No module named 'other'", name="other")
    assert sorted(mount_mcp(cast("Any", object()), HttpSettings(url="https://x.example/agents"))) == [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/agents/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/agents/mcp",
        "/mcp",
    ]
    with pytest.raises(ConfigError, match="MCP is served on the HTTP face: give --http"):
        plan_settings("rooms.py", ServerDocument(), mcp=True, store="memory")
    with pytest.raises(ConfigError, match="A2A is served on the HTTP face: give --http"):
        plan_settings("rooms.py", ServerDocument(), a2a=True, store="memory")


def test_tables_of_the_configuration_enable_mcp_and_a2a() -> None:
    document, findings = parse_server("[mcp]\nenabled = true\n", "bespeak.toml")
    assert (document.mcp.enabled, findings) == (True, [])
    assert plan_settings("x", document, http="127.0.0.1:0", store="memory").mcp
    document, findings = parse_server("[a2a]\nenabled = true\nmost_skills = 7\nretention = 60\n", "bespeak.toml")
    assert findings == []
    settings = plan_settings("x", document, http="127.0.0.1:0", store="memory").a2a
    assert (settings.enabled, settings.most_skills, settings.retention) == (True, 7, 60)
    assert not plan_settings("x", ServerDocument(), http="127.0.0.1:0", store="memory").a2a.enabled


async def test_a_mounted_service_serves_mcp_beside_its_endpoints(tmp_path: Path) -> None:
    # A name of its own: modules are imported once.
    (tmp_path / "mcp_rooms.py").write_text(APP)
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "rooms.example"\napp = "mcp_rooms:app"\n[mcp]\nenabled = true\n'
    )
    service = bespeak.asgi(tmp_path, store="memory")
    headers, body = modern("tools/call", name="query_rooms", arguments={})
    async with service.running():
        transport = httpx.ASGITransport(app=cast("Any", service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            called = await client.post("/mcp", json=body, headers=headers)
            found = await client.get("/rooms:query")
    assert called.json()["result"]["structuredContent"] == {"rooms": ["12"]} == found.json()


@pytest.mark.process
async def test_a_server_serves_mcp_on_its_http_face_and_stops_with_open_streams(tmp_path: Path) -> None:
    environment = {"HOTEL_LEDGER": str(tmp_path / "ledger.sqlite3")}
    with serving(HOTEL, "--http", "127.0.0.1:0", "--mcp", env=environment) as server:
        authority = {"agent_id": "a" * 64, "authority_scope": "booking:room, calendar:write"}
        async with httpx.AsyncClient(trust_env=False, timeout=30) as web:
            catalog = (await web.get(f"{server.url}/.well-known/ai-catalog.json")).json()
            [place] = [entry["url"] for entry in catalog["entries"] if entry["type"] == SERVER_CARD_TYPE]
            card = (await web.get(place)).json()
        [remote] = card["remotes"]
        async with connected_to(remote["url"], "auto", agree, **authority) as client:
            assert (client.server_info.name, client.server_info.version) == (card["title"], card["version"])
            booked = await client.call_tool("book_room", BOOKING)
            async with client.listen(tools_list_changed=True):
                assert await asyncio.to_thread(server.stop) == 0
    assert booked.structured_content is not None


@pytest.mark.process
@pytest.mark.parametrize("era", ["auto", LEGACY])
async def test_a_first_service_is_called_without_any_setting_and_starts_without_warnings(era: str) -> None:
    rooms = ROOT / "docs_src" / "readme" / "rooms.py"
    with serving(rooms, "--http", "127.0.0.1:0", "--mcp") as server:
        async with connected_to(f"{server.url}/mcp", era) as client:
            called = await client.call_tool("query_rooms", {"beds": 2})
        async with httpx.AsyncClient(trust_env=False, timeout=30) as web:
            found = (await web.get(f"{server.url}/rooms:query", params={"beds": 2})).json()
        server.stop()
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""
    assert called.structured_content == {"rooms": ["102", "103"]} == found


@pytest.mark.process
async def test_several_workers_serve_clients_of_both_eras(tmp_path: Path) -> None:
    environment = {"HOTEL_LEDGER": str(tmp_path / "ledger.sqlite3")}
    authority = {"agent_id": "a" * 64, "authority_scope": "booking:room, calendar:write"}
    with serving(HOTEL, "--http", "127.0.0.1:0", "--mcp", "--workers", "2", env=environment) as server:
        headers, body = modern("tools/call", name="book_room", arguments=BOOKING)
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {}}
        sent = {**headers, **{name.replace("_", "-"): value for name, value in authority.items()}}

        async def post() -> Any:
            # A connection for each request, so that some reach the other worker.
            async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
                return (await client.post(f"{server.url}/mcp", json=body, headers=sent)).json()["result"]

        states = {(await post())["requestState"] for _ in range(6)}
        (state,) = states
        answer = {"confirm": {"action": "accept", "content": {"confirm": True}}}
        body["params"] |= {"inputResponses": answer, "requestState": state}
        results = [await post() for _ in range(6)]
        async with connected_to(f"{server.url}/mcp", LEGACY, agree, **authority) as client:
            rooms = await client.call_tool("query_rooms", {"beds": 3})
            refused = error_in(await client.call_tool("book_room", {**BOOKING, "room_id": "102"}))
    assert [result["resultType"] for result in results] == ["complete", *["input_required"] * 5]
    assert rooms.structured_content is not None
    assert refused["code"] == "confirmation-required"


A2A_APP = """
import asyncio

from bespeak import App

app = App(
    "Rooms",
    server_id="rooms.example",
    operator="Tests",
    contact="ops@rooms.example",
)

@app.endpoint("QUERY", "/rooms", impact="informational",
              intent="Find rooms with enough beds.", outcome="The rooms are returned.")
def rooms(beds: int = 1) -> dict[str, list[str]]:
    return {"rooms": ["12"]}

@app.endpoint("WATCH", "/rooms", impact="informational", intent="Watch the rooms.", outcome="The rooms have changed.")
async def watch() -> None:
    await asyncio.Event().wait()
"""


@pytest.mark.parametrize(("mode", "warned"), [("signed", True), ("mtls", False), ("open", False)])
def test_credentials_that_are_unusable_are_warned_of(mode: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = build().dispatcher
    dispatcher.server.store = cast("Any", object())
    make_a2a(HttpAssembly(dispatcher, HttpSettings(), AuthSettings(modes=(mode,))), A2aSettings())
    assert ("A2A takes no signatures" in caplog.text) is warned


async def test_a_mounted_service_has_a_card_if_its_url_is_known(tmp_path: Path) -> None:
    # A name of its own: modules are imported once.
    (tmp_path / "a2a_rooms.py").write_text(A2A_APP)
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "rooms.example"\napp = "a2a_rooms:app"\n[a2a]\nenabled = true\n'
    )
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "query_rooms"}}]}},
    }
    found: list[Any] = []
    for url in (None, "https://rooms.example"):
        service = bespeak.asgi(tmp_path, store="memory", **({} if url is None else {"url": url}))
        async with service.running():
            transport = httpx.ASGITransport(app=cast("Any", service))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                called = await client.post("/a2a", json=body, headers={"A2A-Version": "1.0"})
                found.append(await client.get("/.well-known/agent-card.json"))
        assert called.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [card.status_code for card in found] == [404, 200]
    assert ParseDict(found[1].json(), AgentCard()).supported_interfaces[0].url == "https://rooms.example/a2a"


@pytest.mark.process
async def test_a_task_whose_server_is_killed_does_not_work_for_ever(tmp_path: Path) -> None:
    (tmp_path / "rooms.py").write_text(A2A_APP)
    options = ("--http", "127.0.0.1:0", "--a2a", "--store", str(tmp_path / "store.db"))
    with serving(tmp_path / "rooms.py", *options) as server:
        assert "A2A at /a2a" in server.announcement
        async with connected(server.url) as client:
            task = await send(client, calling("watch_rooms"), return_immediately=True)
            done = await send(client, calling("query_rooms"))
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(20)
    with serving(tmp_path / "rooms.py", *options) as server:
        async with connected(server.url) as client:
            later = [await client.get_task(GetTaskRequest(id=one.id)) for one in (task, done)]
    assert (state(task), [state(each) for each in later]) == ("working", ["failed", "completed"])
    assert output(later[1]) == {"rooms": ["12"]}


@pytest.mark.process
def test_the_sdk_is_loaded_only_if_it_is_needed() -> None:
    code = (
        "import sys, bespeak.app.cli.serve, bespeak.app.server.serving, bespeak.app.server.http_pages;"
        "sys.exit(any(name.partition('.')[0] in ('a2a', 'google') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def dispatcher() -> Dispatcher:
    made = build(make_endpoint("FIND", "/rooms", echo)).dispatcher
    made.server.store = open_store(MEMORY, role="sole")
    return made


@pytest.mark.parametrize(
    ("mcp", "a2a", "places"),
    [(False, False, None), (True, False, {"/mcp"}), (False, True, {"/a2a"}), (True, True, {"/mcp", "/a2a"})],
)
async def test_each_has_its_place(mcp: bool, a2a: bool, places: set[str] | None) -> None:
    serving = dispatcher()
    store = serving.server.store
    await store.start()
    assembly = HttpAssembly(serving, HttpSettings(), AuthSettings())
    beside = WebApplications(assembly, McpSettings(enabled=mcp), A2aSettings(enabled=a2a))
    await beside.start()
    await beside.stop()
    await store.close()
    found = beside.places
    assert (None if found is None else {path for path in found if "well-known" not in path}) == places
