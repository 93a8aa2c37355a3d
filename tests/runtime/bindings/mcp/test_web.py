"""Answers of an MCP server on the web are bounded, and read only if they are not compressed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.runtime.bindings.mcp.servers import launched

from bespeak.contract.handler import McpServer
from bespeak.runtime.bindings.mcp.connection import McpConnection
from bespeak.runtime.bindings.mcp.launch import McpFailure

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(head: str, body: bytes) -> AsyncIterator[str]:
    """Serve one answer to every request; yield the address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}{length}".encode() + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def failure_of(head: str, body: bytes) -> McpFailure:
    async with answering(head, body) as url:
        connection = McpConnection(launched(McpServer(tool="", url=url)))
        failure = await connection.open()
        await connection.close()
    assert failure is not None
    return failure


async def test_answer_beyond_the_limit_is_not_read_to_its_end() -> None:
    failure = await failure_of("", b'"' + b"x" * 9_000_000 + b'"')
    assert (failure.kind, "larger than 8388608 bytes" in failure.text) == ("malformed", True)


async def test_compressed_answer_is_not_read() -> None:
    failure = await failure_of("Content-Encoding: gzip\r\n", b"\x1f\x8b")
    assert (failure.kind, "compressed" in failure.text) == ("malformed", True)


async def test_answer_that_is_not_json_is_malformed() -> None:
    assert (await failure_of("", b"<html>")).kind == "malformed"
