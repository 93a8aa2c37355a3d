"""No process of an MCP server is left behind, not even by a server that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.runtime.bindings.mcp.servers import crooked, is_running, launched

from bespeak.runtime.bindings.mcp import process
from bespeak.runtime.bindings.mcp.connection import McpConnection

pytestmark = [pytest.mark.anyio, pytest.mark.process]

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


async def test_server_that_ignores_every_request_to_end_is_killed_with_its_children(
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
    assert holder.stdout is not None
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
