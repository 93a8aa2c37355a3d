"""Things and entities of a service on a running server: over AGTP, HTTP and MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.faces.mcp.tools import LEGACY, agree, connected_to
from tests.process import ROOT, Served, serving

import bespeak

pytestmark = [pytest.mark.anyio, pytest.mark.process]
GUEST = "0a3f" * 16
SERVICES = {"rooms": ROOT / "docs_src/own-things/rooms/rooms.py", "staff": ROOT / "docs_src/entities/staff/staff.py"}


def served(name: str, folder: Path) -> Any:
    return serving(SERVICES[name], "--http", "127.0.0.1:0", "--mcp", "--store", str(folder / "kept.db"))


async def call(face: str, server: Served, method: str, path: str = "/", **given: Any) -> Any:
    """Call a method over one face and return its result."""
    if face == "agtp":
        async with bespeak.connect(server.uri, agent_id=GUEST) as service:
            return await service.call(method, path, **given)
    if face == "http":
        headers = {"X-AGIS-Method": method, "Agent-ID": GUEST}
        async with httpx.AsyncClient(base_url=server.url) as http:
            return (await http.post(path, json=given, headers=headers)).json()["result"]
    async with connected_to(f"{server.url}/mcp", LEGACY, agree, agent_id=GUEST) as client:
        done = await client.call_tool(f"{method.lower()}{path.replace('/', '_').rstrip('_')}", given)
        assert not done.is_error, done
        return done.structured_content.get("result", done.structured_content)


@pytest.mark.parametrize("face", ["agtp", "http", "mcp"])
async def test_a_booking_is_checked_and_cancelled_on_every_face(face: str, tmp_path: Path) -> None:
    with served("rooms", tmp_path) as server:
        assert (await call(face, server, "CHECK", target="booking:77"))["status"] == "booked"
        done = await call(face, server, "CANCEL", target_id="77", reason="rain")
        assert (done["kind"], done["details"]) == ("booking", {"room": "12"})
        assert (await call(face, server, "CHECK", target="77"))["status"] == "cancelled"


@pytest.mark.parametrize("face", ["agtp", "http", "mcp"])
async def test_an_entity_is_registered_and_cancelled_on_every_face_and_read_back(face: str, tmp_path: Path) -> None:
    with served("staff", tmp_path) as server:
        made = await call(face, server, "REGISTER", entity_type="employee", data={"name": "Ann"})
        read = {"face": "agtp" if face == "mcp" else face, "server": server, "method": "QUERY", "path": "/entities"}
        (found,) = (await call(**read))["entities"]
        assert (found["entity_id"], found["data"]) == (made["entity_id"], {"name": "Ann", "team": "sales"})
        await call(face, server, "CANCEL", target_id=made["entity_id"])
        assert (await call(**read))["entities"] == []
