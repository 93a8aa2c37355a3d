"""What an MCP server is given and returns: variables, messages, bounded web answers, results."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.runtime.bindings.mcp.servers import launched

from bespeak.contract.handler import UPSTREAM_ERRORS, McpServer
from bespeak.runtime.bindings.mcp.connection import McpConnection
from bespeak.runtime.bindings.mcp.process import FailureKind, Launch, McpFailure, MessageLines, TooLong, resolve_server
from bespeak.runtime.bindings.mcp.tool import _ERRORS, error_text, read_output

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


async def test_large_compressed_and_malformed_answers_are_refused() -> None:
    failure = await failure_of("", b'"' + b"x" * 9_000_000 + b'"')
    assert (failure.kind, "larger than 8388608 bytes" in failure.text) == ("malformed", True)
    failure = await failure_of("Content-Encoding: gzip\r\n", b"\x1f\x8b")
    assert (failure.kind, "compressed" in failure.text) == ("malformed", True)
    assert (await failure_of("", b"<html>")).kind == "malformed"


def resolved(server: McpServer, environment: dict[str, str]) -> Launch:
    launch = resolve_server(server, environment)
    assert isinstance(launch, Launch)
    return launch


def test_program_gets_only_named_variables_and_missing_ones_are_reported() -> None:
    server = McpServer(tool="t", command="hotel", args=("--key=${KEY}",), env=("TOKEN",))
    launch = resolved(server, {"PATH": "/bin", "KEY": "k", "TOKEN": "s", "AWS_SECRET": "x"})
    assert launch.command == ("hotel", "--key=k")
    assert dict(launch.environment) == {"PATH": "/bin", "TOKEN": "s"}
    faults = resolve_server(server, {})
    assert isinstance(faults, list)
    assert [at for at, _ in faults] == ["/env/0", "/args/0"]
    assert faults[0][1] == "the MCP server needs the environment variable 'TOKEN', which is not set"


def test_secrets_are_not_in_the_repr_and_headers_can_be_sent() -> None:
    server = McpServer(tool="t", url="https://x.example/mcp", headers={"Authorization": "Bearer ${KEY}"})
    assert "sesame" not in repr(resolved(server, {"KEY": "sesame"}))
    server = McpServer(tool="t", url="https://x.example/mcp", headers={"X-Key": "${KEY}"})
    assert resolve_server(server, {"KEY": "a\nb"}) == [("/headers/X-Key", "the header 'X-Key' cannot be sent")]


def test_token_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    server = McpServer(tool="t", url="https://x.example/mcp", token_file=str(file))
    launch = resolved(server, {})
    assert launch.fault == f"the token in {file} cannot be read"
    file.write_text("sesame\n")
    assert launch.read_headers() == {"Authorization": "Bearer sesame"}
    file.write_text("two\nlines")
    assert launch.read_headers() == "it does not hold a token on one line"


def test_program_and_folder_that_do_not_exist_are_faults(tmp_path: Path) -> None:
    def fault(command: str, folder: Path | str = "") -> str:
        return resolved(McpServer(tool="t", command=command, folder=str(folder)), {"PATH": "/usr/bin:/bin"}).fault

    assert fault("surely-not-installed") == "the program 'surely-not-installed' is not found"
    assert fault("sh", tmp_path / "none") == f"the folder {tmp_path / 'none'} does not exist"
    assert fault(sys.executable) == ""
    (tmp_path / "serve").touch()
    assert fault("serve", tmp_path) == ""


def test_failures_are_declared_errors_with_one_bounded_line() -> None:
    assert set(_ERRORS) == set(get_args(FailureKind))
    assert {name for name, _ in _ERRORS.values()} == set(UPSTREAM_ERRORS)
    assert error_text({"content": text("a\nb", "c\x1b[0m")}) == "a b c\\x1b[0m"
    assert len(error_text({"content": text("x" * 10_000)})) == 2_003
    assert error_text({"content": [{"type": "image"}]}) == ""


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))), st.integers(1, 7))
def test_lines_are_the_same_for_every_division_into_pieces(lines: list[bytes], size: int) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    taken = MessageLines(most=100)
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert [line for piece in pieces for line in taken.feed(piece)] == lines


def test_long_line_is_dropped_and_the_next_one_is_read() -> None:
    lines = MessageLines(most=300)
    assert [line for _ in range(1000) for line in lines.feed(b"x" * 10)] == []
    long, short = lines.feed(b"\nshort\n")
    assert isinstance(long, TooLong)
    assert short == b"short"


def test_id_of_a_long_answer_is_found_at_its_beginning_or_end() -> None:
    body = b'"result": {"id": 9, "text": "' + b"x" * 500 + b'"}'
    for line, number in (
        (b'{"jsonrpc": "2.0", "id": 7, ' + body + b"}", 7),
        (b"{" + body + b', "jsonrpc":"2.0","id":8}', 8),
        (b"{" + body + b',"id":8,"jsonrpc":"2.0"}', 8),
        (b"{" + body + b"}", None),
    ):
        [found] = MessageLines(most=100).feed(line + b"\n")
        assert isinstance(found, TooLong)
        assert found.answered == number


def text(*said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": one} for one in said]


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def test_output_without_room_for_blocks_has_none() -> None:
    assert read_output({"structuredContent": {"sum": 3}, "content": [IMAGE]}, carries=False) == {"sum": 3}
    assert read_output({"content": text('{"content": []}')}, carries=False) == {"content": []}


@rows(
    "result, output",
    ({"structuredContent": {"sum": 3}, "content": text("3")}, {"sum": 3}),
    ({"structuredContent": [1, 2]}, {"result": [1, 2]}),
    ({"content": text('{"sum": 3}')}, {"sum": 3}),
    ({"content": text("[1]")}, {"content": text("[1]")}),
    ({"content": text("plain")}, {"content": text("plain")}),
    ({"content": text('{"a": 1, "a": 2}')}, {"content": text('{"a": 1, "a": 2}')}),
    ({"content": text("[" * 10_000)}, {"content": text("[" * 10_000)}),
    ({"content": text("{}", "{}")}, {"content": text("{}", "{}")}),
    ({}, {"content": []}),
    ({"structuredContent": {"sum": 3}, "content": [IMAGE]}, {"sum": 3, "content": [IMAGE]}),
    ({"structuredContent": {"content": 3}, "content": [IMAGE]}, {"content": 3}),
    ({"content": text('{"content": []}')}, {"content": text('{"content": []}')}),
)
def test_output_is_structured_content_or_json_or_the_blocks(result: dict[str, Any], output: dict[str, Any]) -> None:
    assert read_output(result) == output
