"""Upstreams are looked at before serving; those that do not answer are deferred."""

from __future__ import annotations

import asyncio
import socket
import sys
from dataclasses import replace

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpServer, McpTool
from bespeak.runtime.bindings.upstream_probe import probe_upstreams

pytestmark = pytest.mark.anyio

BOOK = make_endpoint("BOOK", "/room", echo)


def bound(url: str, path: str = "/room", *, deferred: bool = False) -> Endpoint:
    return replace(BOOK, path=path, handler=ExternalService(url=url, method="GET", deferred=deferred))


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.requirement("API-13.2-15")
async def test_endpoints_of_an_upstream_that_does_not_answer_are_reported_as_deferred() -> None:
    url = f"https://127.0.0.1:{unused_port()}"
    endpoints = [bound(f"{url}/a", "/a"), bound(f"{url}/b", "/b"), bound(f"{url}/c", "/c", deferred=True), BOOK]
    findings = await probe_upstreams(endpoints)
    assert [(finding.rule, finding.severity) for finding in findings] == [("H707", "warning")] * 2
    assert all("deferred" in finding.message for finding in findings)
    assert [str(finding.message).split(":")[0] for finding in findings] == ["BOOK /a", "BOOK /b"]


async def test_each_upstream_that_answers_is_connected_to_once_and_sent_nothing() -> None:
    seen: list[bytes] = []
    done = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read())
        writer.close()
        done.set()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"https://127.0.0.1:{port}"
    assert await probe_upstreams([bound(f"{url}/a", "/a"), bound(f"{url}/b", "/b")]) == []
    await asyncio.wait_for(done.wait(), 10)
    assert seen == [b""]
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".example", "xn--\u00e4"])
async def test_a_host_that_cannot_be_resolved_is_reported(host: str) -> None:
    [finding] = await probe_upstreams([bound(f"https://{host}/")], seconds=20.0)
    assert "cannot be reached" in finding.message


async def test_program_of_an_mcp_server_is_only_looked_for() -> None:
    def calling(command: str, path: str) -> Endpoint:
        server = McpServer(tool="t", command=command)
        return replace(bound("https://127.0.0.1/", path), handler=McpTool(mcp=server))

    endpoints = [calling(sys.executable, "/a"), calling("surely-not-installed", "/b")]
    [finding] = await probe_upstreams(endpoints, environment={"PATH": "/bin"})
    assert finding.rule == "H707"
    assert "the program 'surely-not-installed' is not found" in finding.message
