"""`bespeak mcp` with the official SDK's client over real pipes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests import warm
from tests.cases import rows
from tests.faces.mcp.tools import ERAS, MODERN, Answer, agree, answering, error_in, modern
from tests.process import bespeak, refused, serving

if TYPE_CHECKING:
    from mcp import Client

pytestmark = [pytest.mark.anyio, pytest.mark.process]

APP = """
import os

from bespeak import App

print("a module that prints while it is imported")
os.system("echo a process that prints while it is imported")
assert os.read(0, 1) == b"", "the input belongs to the protocol"
app = App("Rooms", server_id="rooms.example", operator="Tests", contact="ops@rooms.example")

@app.endpoint("QUERY", "/rooms", impact="informational", scopes=["rooms:read"],
              intent="Find rooms with enough beds.", outcome="The rooms are returned.")
def rooms(beds: int = 1) -> dict[str, list[str]]:
    print("a handler that prints")
    os.write(1, b"a library that prints")
    return {"rooms": ["12"]}

@app.endpoint("BOOK", "/rooms/{room_id}", impact="irreversible", scopes=["rooms:write"],
              intent="Reserve a room.", outcome="A reservation exists and its id is returned.")
def book(room_id: str) -> dict[str, str]:
    return {"reservation_id": "r1"}
"""
BLOCKING = """
import time

@app.endpoint("MONITOR", "/rooms", impact="informational", scopes=["rooms:read"],
              intent="Monitor the rooms for a long time.", outcome="The change of the rooms is returned.")
def monitor() -> dict[str, str]:
    print("blocked", flush=True)
    time.sleep(600)
    return {}
"""
SLOW = """
import asyncio
from bespeak import App, Context

app = App("Halls", server_id="halls.example", operator="Tests", contact="ops@halls.example")
ended = []

@app.endpoint("ANALYZE", "/halls", impact="informational", scopes=["halls:read"],
              intent="Analyze the halls.", outcome="Their number is returned.")
async def analyze(wait: bool, context: Context) -> dict[str, int]:
    context.progress(1, 2, "first")
    try:
        if wait:
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        ended.append(1)
        raise
    return {"halls": 2}

@app.endpoint("LIST", "/halls", impact="informational", scopes=["halls:read"],
              intent="List what was cancelled.", outcome="The list is returned.")
def cancelled() -> dict[str, list[int]]:
    return {"cancelled": ended}
"""
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/pets": {
            "get": {"operationId": "listPets", "summary": "List all pets", "responses": {"200": {"description": ""}}}
        }
    },
}
AUTHORITY = ("--as", "tests", "--scope", "rooms:read,rooms:write")


@asynccontextmanager
async def opened(
    *arguments: str, era: str = MODERN, answer: Answer | None = None, cwd: Path | None = None
) -> AsyncIterator[Client]:
    """Start `bespeak mcp` and connect the SDK's client."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = str(warm.command())
    started = StdioServerParameters(command=command, args=["mcp", *arguments], env=dict(os.environ), cwd=cwd)
    with Path(os.devnull).open("w") as unread:
        transport = stdio_client(started, errlog=unread)
        async with Client(transport, mode=era, elicitation_callback=answering(answer)) as client:
            yield client


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "rooms.py"
    path.write_text(APP)
    return path


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    path = tmp_path / "quiet.py"
    path.write_text(re.sub(r".*(print\(|os\.).*\n", "", APP))
    return path


@pytest.mark.parametrize("era", ERAS)
async def test_an_app_is_served_to_clients_of_both_eras(app: Path, era: str) -> None:
    async with opened(str(app), *AUTHORITY, era=era, answer=agree) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        rooms = await client.call_tool("query_rooms", {"beds": 2})
        booked = await client.call_tool("book_rooms", {"room_id": "12"})
    assert names == ["book_rooms", "query_rooms"]
    assert rooms.structured_content == {"rooms": ["12"]}
    assert booked.structured_content == {"reservation_id": "r1"}


async def test_a_person_confirms_with_the_command_of_the_refusal(app: Path) -> None:
    async with opened(str(app), *AUTHORITY) as client:
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
        command = re.search(r"`bespeak (.*?)`", error["remedy"])
        assert command is not None
        done = bespeak(*command[1].split(), "--by", "ann")
        assert done.returncode == 0, done.stderr
        booked = await client.call_tool("book_rooms", {"room_id": "12"})
        again = await client.call_tool("book_rooms", {"room_id": "12"})
    assert booked.structured_content == {"reservation_id": "r1"}
    assert error_in(again)["code"] == "confirmation-required"


async def test_an_openapi_file_becomes_a_server(tmp_path: Path) -> None:
    (tmp_path / "pets.json").write_text(json.dumps(OPENAPI))
    async with opened(
        "pets.json", "--as", "tests", "--scope", "pets:read", "--store", "memory", cwd=tmp_path
    ) as client:
        (tool,) = (await client.list_tools()).tools
        error = error_in(await client.call_tool("list_pets", {}))
    assert (tool.name, tool.description) == ("list_pets", "List all pets\nOutcome: The matching pets are in the answer")
    assert error["code"] == "upstream_connection_error"


async def test_live_services_are_called_at_their_address(quiet: Path) -> None:
    with serving(quiet, "--http", "127.0.0.1:0") as server:
        for place, options in ((server.uri, ()), (server.url, ("--refresh", "--allow-private"))):
            async with opened(place, *AUTHORITY, *options, answer=agree) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                booked = await client.call_tool("book_rooms", {"room_id": "12"})
            assert names == ["book_rooms", "query_rooms"]
            assert booked.structured_content == {"reservation_id": "r1"}, booked


async def test_a_service_that_is_gone_is_a_tool_error(quiet: Path) -> None:
    with serving(quiet) as server:
        async with opened(server.uri, *AUTHORITY) as client:
            await client.list_tools()
            server.stop()
            error = error_in(await client.call_tool("query_rooms", {}))
            asked = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
    assert error["code"] == "service-not-reached"
    assert "connection refused" in error["message"]
    assert "elicitation" in asked["remedy"]  # no other process sees its cases


async def test_progress_and_cancellation_pass_through_the_pipes(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    heard: list[tuple[Any, ...]] = []
    told = asyncio.Event()

    async def listen(*news: Any) -> None:
        heard.append(news)
        told.set()

    async with opened(str(path), "--as", "tests", "--scope", "halls:read") as client:
        done = await client.call_tool("analyze_halls", {"wait": False}, progress_callback=listen)
        told.clear()
        calling = asyncio.create_task(client.call_tool("analyze_halls", {"wait": True}, progress_callback=listen))
        await asyncio.wait_for(told.wait(), 20)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        ended = await client.call_tool("list_halls", {})
        while not (ended.structured_content or {})["cancelled"]:
            ended = await client.call_tool("list_halls", {})
    assert (done.structured_content, heard[0]) == ({"halls": 2}, (1.0, 2.0, "first"))


async def test_toolsets_and_the_number_of_tools_are_options(app: Path) -> None:
    app.write_text(APP.replace('"/rooms", impact', '"/beds", impact'))
    async with opened(str(app), *AUTHORITY, "--tools-listed", "1") as client:
        searched = [tool.name for tool in (await client.list_tools()).tools]
    async with opened(str(app), *AUTHORITY, "--tools-listed", "all", "--toolset", "beds") as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
    assert (searched, listed) == (["call_capability", "find_capability"], ["query_beds"])


def test_a_toolset_that_does_not_exist_is_refused_at_the_start(app: Path) -> None:
    assert "no endpoint is in the namespace 'beds'; there are rooms" in refused("mcp", str(app), "--toolset", "beds")


@pytest.mark.parametrize("given", ["0", "-1", "many", ""])
def test_a_number_of_tools_that_is_not_one_is_refused(given: str) -> None:
    assert "must be a number above 0, or all" in refused("mcp", "x", "--tools-listed", given)


@rows(
    "arguments, message",
    (["nowhere"], "nothing to serve at 'nowhere'"),
    (["agtp://127.0.0.1:9", "--store", "x.db"], "--store is for a service that is loaded"),
)
def test_a_service_that_cannot_be_used_is_refused_at_the_start(arguments: list[str], message: str) -> None:
    done = bespeak("mcp", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_missing_authority_is_noted_at_the_start_and_the_end_of_input_ends_the_server(app: Path) -> None:
    done = bespeak("mcp", str(app), "--scope", "rooms:read")
    assert (done.returncode, done.stdout) == (0, "")
    assert "note: 1 of 2 tools need more authority: --as NAME --scope rooms:write" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None])
def test_a_signal_or_the_end_of_input_ends_the_server_although_a_call_blocks(
    app: Path, number: signal.Signals | None
) -> None:
    app.write_text(APP + BLOCKING)
    command = [warm.command(), "mcp", str(app), "--store", "memory", *AUTHORITY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(modern("tools/call", name="monitor_rooms", arguments={})[1]).encode() + b"\n")
        process.stdin.flush()
        assert b"blocked\n" in iter(process.stderr.readline, b"")
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(20) == 0
