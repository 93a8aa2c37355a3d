"""MCP beside the HTTP face: its places, its extra, and a server with both."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from tests.faces.mcp.tools import LEGACY, agree, connected_to, error_in, modern
from tests.process import HOTEL, serving

import bespeak
from bespeak.app.server.mcp_face import mounted, sdk_needed
from bespeak.app.server.settings import plan_settings
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.documents.projections.discovery import SERVER_CARD_TYPE
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio

APP = '''
from bespeak import App

app = App("Rooms", server_id="rooms.example", operator="Tests", contact="ops@rooms.example")

@app.endpoint("QUERY", "/rooms", impact="informational")
def rooms(beds: int = 1) -> dict[str, list[str]]:
    """Find rooms with enough beds.

    Outcome: The rooms are returned.
    """
    return {"rooms": ["12"]}
'''
BOOKING = {
    "guest_id": "7f3a0b9c-6f0e-4a54-9f55-3c2d1e0f9a8b",
    "room_id": "101",
    "arrival": "2027-01-01",
    "departure": "2027-01-03",
}


def test_a_missing_sdk_is_named_with_the_extra() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'bespeak\[mcp\]'"), sdk_needed():
        raise ModuleNotFoundError("No module named 'mcp'", name="mcp.server")
    with pytest.raises(ModuleNotFoundError), sdk_needed():
        raise ModuleNotFoundError("No module named 'other'", name="other")


def test_mcp_is_found_with_and_without_the_prefix_of_the_public_url() -> None:
    assert sorted(mounted(cast("Any", object()), HttpSettings(url="https://x.example/agents"))) == [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/agents/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/agents/mcp",
        "/mcp",
    ]


def test_mcp_needs_the_http_face() -> None:
    with pytest.raises(ConfigError, match="MCP is served on the HTTP face: give --http"):
        plan_settings("rooms.py", ServerDocument(), mcp=True, store="memory")


def test_the_table_of_the_configuration_enables_it() -> None:
    document, findings = parse_server("[mcp]\nenabled = true\n", "bespeak.toml")
    assert (document.mcp.enabled, findings) == (True, [])
    assert plan_settings("x", document, http="127.0.0.1:0", store="memory").mcp


async def test_a_mounted_service_serves_mcp_beside_its_endpoints(tmp_path: Path) -> None:
    # A name of its own: modules are imported once.
    (tmp_path / "mcp_rooms.py").write_text(APP)
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "rooms.example"\noperator = "T"\ncontact = "a@t.example"\napp = "mcp_rooms:app"\n'
        "[policies]\nscope_required_for_invocation = false\n[mcp]\nenabled = true\n"
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
