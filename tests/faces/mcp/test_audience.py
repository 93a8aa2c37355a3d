"""Announcements: who is told, and that nobody waits for a client that does not read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.faces.mcp.tools import MODERN

pytestmark = pytest.mark.anyio

LEGACY = "2025-11-25"


class Session:
    """A client's session, which notes what it is told."""

    def __init__(self, *, reads: bool = True, gone: bool = False) -> None:
        self.told: list[str] = []
        self.asked = 0
        self._reads = reads
        self._gone = gone

    async def _send(self, what: str) -> None:
        self.asked += 1
        if self._gone:
            raise RuntimeError("closed")
        if not self._reads:
            await asyncio.Event().wait()
        self.told.append(what)

    async def send_tool_list_changed(self) -> None:
        await self._send("tools")

    async def send_prompt_list_changed(self) -> None:
        await self._send("prompts")

    async def send_resource_list_changed(self) -> None:
        await self._send("resources")


def met(session: Session, key: str | None, version: str = LEGACY) -> Any:
    request = None if key is None else SimpleNamespace(headers={"mcp-session-id": key})
    return SimpleNamespace(protocol_version=version, request=request, session=session)


async def test_streams_and_sessions_are_told_each_in_its_way() -> None:
    from bespeak.faces.mcp.server import Audience

    audience, heard = Audience(), []
    audience.bus.subscribe(lambda event: heard.append(type(event).__name__))
    stdio, legacy, modern = Session(), Session(), Session()
    audience.meet(met(stdio, None))
    audience.meet(met(legacy, "a"))
    audience.meet(met(modern, "b", MODERN))
    await audience.announce(["bespeak://manifest"])
    await asyncio.sleep(0)
    assert heard == ["ToolsListChanged", "PromptsListChanged", "ResourcesListChanged", "ResourceUpdated"]
    assert stdio.told == legacy.told == ["tools", "prompts", "resources"]
    assert modern.told == []


async def test_nobody_waits_for_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from bespeak.faces.mcp.server import Audience

    monkeypatch.setattr("bespeak.faces.mcp.server._PATIENCE", 0.01)
    audience = Audience()
    stuck, reading = Session(reads=False), Session()
    audience.meet(met(stuck, "a"))
    audience.meet(met(reading, "b"))
    await audience.announce([])
    while len(audience._telling) > 0:
        await asyncio.wait(audience._telling)
    await audience.announce([])
    await asyncio.sleep(0)
    assert (stuck.asked, reading.asked) == (1, 6)


async def test_clients_that_are_gone_are_forgotten_and_the_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from bespeak.faces.mcp.server import Audience

    monkeypatch.setattr("bespeak.faces.mcp.server.MOST_TOLD", 3)
    audience = Audience()
    sessions = [Session(gone=number == 4) for number in range(5)]
    for number, session in enumerate(sessions):
        audience.meet(met(session, str(number)))
    audience.forget("3")
    for _ in range(2):
        await audience.announce([])
        await asyncio.sleep(0)
    assert [session.asked for session in sessions] == [0, 0, 6, 0, 1]
