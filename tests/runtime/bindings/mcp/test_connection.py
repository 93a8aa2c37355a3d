"""A connection to an MCP server: tools, answers, failures, and no process left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import MCPError
from mcp_types import INVALID_REQUEST
from tests.runtime.bindings.mcp.servers import crooked, is_running, launched, on_the_web

from bespeak.contract.handler import McpServer
from bespeak.runtime.bindings.mcp import connection as module
from bespeak.runtime.bindings.mcp import process
from bespeak.runtime.bindings.mcp.connection import McpConnection
from bespeak.runtime.bindings.mcp.process import McpFailure

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@asynccontextmanager
async def connected(server: McpServer) -> AsyncIterator[McpConnection]:
    connection = McpConnection(launched(server))
    assert await connection.open() is None
    try:
        yield connection
    finally:
        await connection.close()


async def failed(connection: McpConnection, tool: str) -> McpFailure:
    failure = await connection.call(tool, {})
    assert isinstance(failure, McpFailure)
    return failure


async def text_of(connection: McpConnection, tool: str) -> str:
    answer = await connection.call(tool, {})
    assert isinstance(answer, dict)
    return str(answer["content"][0]["text"])


async def unopened(server: McpServer, **more: float) -> McpFailure:
    connection = McpConnection(launched(server), **more)
    failure = await connection.open()
    assert failure is not None
    await connection.close()
    return failure


async def test_tools_of_all_pages_are_listed_and_called_beside_each_other() -> None:
    async with connected(crooked()) as connection:
        assert (connection.title, connection.version, connection.protocol) == ("crooked", "1.2", "2025-06-18")
        assert len(connection.tools) == 16
        assert connection.tools["delete_note"].hints == {"readOnlyHint": True}
        assert connection.tools["add"].input_schema["required"] == ["a", "b"]
        answers = await asyncio.gather(*(connection.call("add", {"a": number, "b": 1}) for number in range(5)))
        assert [isinstance(one, dict) and one["structuredContent"] for one in answers] == [
            {"sum": number + 1} for number in range(5)
        ]


async def test_rubbish_and_answers_beyond_the_limit_do_not_end_the_connection() -> None:
    async with connected(crooked()) as connection:
        assert await text_of(connection, "rubbish") == "after the rubbish"
        assert (await failed(connection, "flood")).kind == "malformed"
        assert isinstance(await connection.call("add", {"a": 1, "b": 1}), dict)
        assert await text_of(connection, "question") == "Elicitation not supported"


async def test_server_that_dies_in_a_call_is_lost_with_its_last_words() -> None:
    async with connected(crooked()) as connection:
        failure = await failed(connection, "crash")
        assert failure.kind == "lost"
        assert "Segmentation fault, sort of" in failure.text
        assert not connection.is_open
        assert await connection.call("add", {}) == McpFailure("unreachable", failure.text)


async def test_changed_tools_are_listed_again() -> None:
    async with connected(crooked()) as connection:
        await connection.call("change", {})
        while connection.changes < 2:
            await asyncio.sleep(0)
        assert "texts" not in connection.tools
        assert connection.tools["add"].input_schema["required"] == ["a", "b", "c"]


async def test_progress_is_told_to_who_wants_to_hear_of_it() -> None:
    told: list[tuple[float, float | None, str | None]] = []
    async with connected(crooked()) as connection:
        await connection.call("progress", {}, lambda *one: told.append(one))
        await connection.call("progress", {})
    assert sorted(told) == [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]


async def test_question_of_the_present_revision_is_a_failure_that_says_what_is_asked() -> None:
    async with on_the_web() as url, connected(McpServer(tool="", url=url)) as connection:
        assert await failed(connection, "ask") == McpFailure("asks", "elicitation")


async def test_server_that_does_not_answer_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROBE_SECONDS", 0.0)
    async with connected(crooked()) as connection:
        await connection.probe()
        assert not connection.is_open


async def test_silent_unreachable_and_dying_servers_are_given_up_with_the_reason() -> None:
    failure = await unopened(crooked("dies"))
    assert failure.kind in ("lost", "unreachable")
    assert "No module named 'missing'" in failure.text
    failure = await unopened(crooked("silent"), start_seconds=0.2)
    assert failure == McpFailure("unreachable", "no list of tools within 0.2 s")
    assert (await unopened(McpServer(tool="", url="http://127.0.0.1:9/mcp"))).kind in ("unreachable", "lost")


async def test_server_that_ends_at_a_message_it_does_not_expect_is_asked_as_earlier_clients_did() -> None:
    async with connected(crooked("strict")) as connection:
        assert connection.protocol == "2025-06-18"


async def test_name_that_is_listed_twice_is_told() -> None:
    async with connected(crooked("twice")) as connection:
        assert connection.repeated == ("add",)


async def test_session_that_the_server_forgot_is_begun_anew() -> None:
    async with connected(crooked()) as connection:
        assert connection._failure(MCPError(INVALID_REQUEST, "Session terminated")).kind == "unreachable"
        assert not connection.is_open


async def test_list_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOOLS", 7)
    failure = await unopened(crooked())
    assert (failure.kind, "more than 7 tools" in failure.text) == ("malformed", True)


async def test_server_on_the_web_is_called_in_the_present_revision() -> None:
    async with on_the_web() as url, connected(McpServer(tool="", url=url)) as connection:
        assert (connection.title, connection.protocol) == ("webbed", "2026-07-28")
        answer = await connection.call("multiply", {"a": 6, "b": 7})
        assert isinstance(answer, dict)
        assert answer["structuredContent"] == {"product": 42}
        assert (await failed(connection, "flood")).kind in ("malformed", "lost")


async def test_server_on_the_web_that_refuses_the_credential_is_told_apart() -> None:
    async with on_the_web("sesame") as url:
        assert (await unopened(McpServer(tool="", url=url))).kind == "authentication"
        headers = {"Authorization": "Bearer ${KEY}"}
        known = McpConnection(launched(McpServer(tool="", url=url, headers=headers), {"KEY": "sesame"}))
        assert await known.open() is None
        await known.close()


HOLDER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from tests.runtime.bindings.mcp.servers import crooked, launched
from bespeak.runtime.bindings.mcp.connection import McpConnection

async def main():
    connection = McpConnection(launched(crooked("stubborn", sys.argv[2])))
    await connection.open()
    print("open", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def gone(pids: list[int]) -> bool:
    """Wait until processes have ended; the test's time limit bounds it."""
    while any(map(is_running, pids)):
        await asyncio.sleep(0.01)
    return True


async def test_server_that_does_not_end_is_killed_with_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE", 0.1)
    connection = McpConnection(launched(crooked("stubborn", str(tmp_path / "pids"))))
    assert await connection.open() is None
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(map(is_running, pids))
    await connection.close()
    assert await gone(pids)


async def test_cancelled_start_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_GRACE", 0.1)
    file = tmp_path / "pids"
    connection = McpConnection(launched(crooked("mute", str(file))))
    opening = asyncio.create_task(connection.open())
    while not (file.exists() and file.read_text()):
        await asyncio.sleep(0.01)
    opening.cancel()
    await asyncio.wait({opening})
    assert await gone([int(pid) for pid in file.read_text().split()])


async def test_server_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    root = str(Path(__file__).parents[4])
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, root, str(file), stdout=PIPE)
    assert await holder.stdout.readline() == b"open\n"
    pids = [int(pid) for pid in file.read_text().split()]
    assert all(map(is_running, pids))
    holder.send_signal(signal.SIGKILL)
    await holder.wait()
    assert await gone(pids)


async def test_program_gets_no_file_of_this_process(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), False)
        connection = McpConnection(launched(crooked("stubborn", str(tmp_path / "pids"))))
        assert await connection.open() is None
        pid = int((tmp_path / "pids").read_text().split()[0])
        held = {str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}
        await connection.close()
    assert str(tmp_path / "secret") not in held
    # Standard input, output and errors, and the pipe of the guard.
    assert len({one for one in held if one.startswith(("pipe:", "socket:"))}) == 4
