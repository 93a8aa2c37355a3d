"""Node, and the programs that test servers of MCP: `make node` installs them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import pytest

PROGRAMS: Final = Path(sys.prefix) / "node" / "node_modules" / ".bin"
"""Folder of the programs, in the virtual environment."""

needs_node: Final = pytest.mark.skipif(
    not (PROGRAMS / "mcp-inspector").exists(), reason="Node and its packages are not installed: run `make node`"
)


async def run_program(name: str, *arguments: str, cwd: Path) -> tuple[int, bytes]:
    """Run a program to its end; return its exit code and what it prints on standard output."""
    process = await asyncio.create_subprocess_exec(
        PROGRAMS / "node",
        PROGRAMS / name,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=cwd,
        env={**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"},
    )
    try:
        printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, printed
