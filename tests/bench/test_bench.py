"""The benchmark scripts can be read and run; what they measure is not judged here."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

BENCH = Path(__file__).resolve().parents[2] / "bench"

# Answers every request with the same reply, on a port it chooses and prints.
FIXED_REPLY_SERVER = """
import asyncio, sys

REPLY = sys.argv[1].encode().decode("unicode_escape").encode()

class Fixed(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(REPLY * data.count(b"\\r\\n\\r\\n"))

async def main():
    server = await asyncio.get_running_loop().create_server(Fixed, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""

LOADERS = ["python", "c"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    target = tmp_path_factory.mktemp("loader") / "loader"
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", target, BENCH / "loader.c"], check=True)
    return target


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest, program: Path | None) -> list[str]:
    if request.param == "python":
        return [sys.executable, str(BENCH / "loader.py")]
    if program is None:
        pytest.skip("the C loader needs Linux and a C compiler")
    return [str(program)]


def serve(reply: str) -> Iterator[int]:
    server = subprocess.Popen([sys.executable, "-c", FIXED_REPLY_SERVER, reply], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


@pytest.fixture
def agtp_port() -> Iterator[int]:
    yield from serve(r"AGTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}")


@pytest.fixture
def chunked_port() -> Iterator[int]:
    yield from serve(r"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1\r\n \r\n0\r\n\r\n")


@pytest.fixture
def refusing_port() -> Iterator[int]:
    yield from serve(r"HTTP/1.1 422 No\r\ncontent-length: 4\r\n\r\nnone")


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    file = tmp_path / "requests"
    file.write_bytes(b"AGTP/1.0 BOOK /room\r\nContent-Length: 2\r\n\r\n{}AGTP/1.0 QUERY /\r\nContent-Length: 0\r\n\r\n")
    return file


def run(loader: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*loader, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("script", sorted(BENCH.rglob("*.py")), ids=lambda path: path.name)
def test_every_script_parses_and_has_a_docstring(script: Path) -> None:
    assert ast.get_docstring(ast.parse(script.read_text()))


@pytest.mark.parametrize(("connections", "depth"), [(1, 1), (3, 4)])
def test_a_short_run_counts_replies_without_errors(
    loader: list[str], agtp_port: int, requests: Path, connections: int, depth: int
) -> None:
    done = run(loader, agtp_port, requests, connections, depth, 0.3)
    result = json.loads(done.stdout)
    assert (result["errors"], done.returncode) == (0, 0)
    assert result["requests"] > 0
    assert result["p50_us"] <= result["p99_us"]


def test_a_reply_in_chunks_is_counted_once(loader: list[str], chunked_port: int, requests: Path) -> None:
    done = run(loader, chunked_port, requests, 1, 1, 50, 20)
    result = json.loads(done.stdout)
    assert (result["errors"], result["requests"]) == (0, 20)


def test_a_reply_other_than_200_is_an_error_and_shown(loader: list[str], refusing_port: int, requests: Path) -> None:
    done = run(loader, refusing_port, requests, 2, 1, 0.3)
    result = json.loads(done.stdout)
    assert result["errors"] == result["requests"] > 0
    assert "422 No" in done.stderr


def test_run_ends_when_its_limit_is_reached(loader: list[str], agtp_port: int, requests: Path) -> None:
    assert 20 <= json.loads(run(loader, agtp_port, requests, 4, 1, 50, 20).stdout)["requests"] < 20 + 4


def test_wrong_arguments_and_truncated_files_are_refused(loader: list[str], agtp_port: int, tmp_path: Path) -> None:
    file = tmp_path / "short"
    file.write_bytes(b"AGTP/1.0 BOOK /room\r\nContent-Length: 20\r\n\r\n{}")
    done = run(loader, agtp_port, file, 1, 1, 0.3)
    assert (done.returncode, "ends inside a request" in done.stderr) == (1, True), done.stderr
    done = run(loader, 1, 2)
    assert (done.returncode, done.stderr.startswith("usage:")) == (2, True), done.stderr


def test_command_line_of_the_suite_is_parsed() -> None:
    done = run([sys.executable, str(BENCH / "run.py")], "--help")
    assert (done.returncode, "--only" in done.stdout) == (0, True), done.stderr
