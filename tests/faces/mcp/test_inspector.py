"""The Inspector's command line over the hotel and over an imported HTTP API: stdio and HTTP, both eras."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.documents.openapi.notes_api import described, running_notes
from tests.node import needs_node, run_program
from tests.process import HOTEL, ROOT, serving

pytestmark = [pytest.mark.anyio, pytest.mark.process, needs_node]
AGENT = "a" * 64
UNION = "`type` is an array"
LIST, CALL = "tools/list", "tools/call"
# Each starts Node, and on stdio a server. Together they list and call in both eras on both transports.
RUNS = {
    ("hotel", "http"): [(LIST, "modern"), (CALL, "legacy")],
    ("hotel", "stdio"): [(LIST, "legacy"), (CALL, "modern")],
    ("imported", "http"): [(LIST, "legacy"), (CALL, "modern")],
    ("imported", "stdio"): [(LIST, "modern"), (CALL, "legacy")],
}


@dataclass
class Service:
    """A service to inspect, a call, and the start of its output."""

    name: str
    target: str
    scopes: str
    call: tuple[str, ...]
    output: dict[str, Any]
    env: dict[str, str]
    allowed: tuple[str, ...] = ()
    """Warnings about what the contract really says."""
    url: str = field(default="", init=False)

    def place(self, transport: str) -> list[str]:
        """Return the arguments that name the server."""
        if transport == "http":
            return [self.url, "--header", f"Agent-ID: {AGENT}", "--header", f"Authority-Scope: {self.scopes}"]
        env = [word for name, value in self.env.items() for word in ("-e", f"{name}={value}")]
        options = ["--store", "memory", "--as", "tests", "--scope", self.scopes]
        return [sys.executable, "-m", "bespeak", "mcp", self.target, *options, *env]


@pytest.fixture(scope="module", params=["hotel", "imported"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("inspected")
    path = {"PYTHONPATH": str(ROOT / "src")}  # the Inspector passes on nothing but what it is told
    with ExitStack() as stack:
        if request.param == "hotel":
            call = ("query_rooms", "--tool-arg", "beds=3")
            ledger = {"HOTEL_LEDGER": str(folder / "ledger.sqlite3")}
            rooms = {"rooms": [{"room_id": "102"}]}
            found = Service("hotel", str(HOTEL), "booking:room", call, rooms, {**path, **ledger})
        else:
            notes = stack.enter_context(running_notes(folder))
            (folder / "notes.json").write_text(json.dumps(described(f"https://127.0.0.1:{notes.port}")))
            env = {"UPSTREAM_ACME_NOTES_API_KEY": "secret-key", "SSL_CERT_FILE": str(notes.authority)}
            call = ("list_notes", "--tool-arg", "limit=1")
            allowed = (UNION,)  # `nullable` of OpenAPI 3.0
            target, items = str(folder / "notes.json"), {"items": [{"id": "1"}]}
            found = Service("imported", target, "acme-notes:read", call, items, {**path, **env}, allowed)
        server = stack.enter_context(serving(found.target, "--http", "127.0.0.1:0", "--mcp", env=found.env))
        found.url = f"{server.url}/mcp"
        yield found


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_tools_are_listed_without_findings_and_called(service: Service, transport: str, tmp_path: Path) -> None:
    async def inspect(method: str, era: str) -> tuple[dict[str, Any], list[str]]:
        asked = ("--strict",) if method == LIST else ("--tool-name", *service.call)
        options = ("--protocol-era", era, "--connect-timeout", "0", "--format", "json", "--method", method, *asked)
        code, printed = await run_program("mcp-inspector", "--cli", *service.place(transport), *options, cwd=tmp_path)
        assert code == 0, printed.decode()
        lines = printed.decode().splitlines()
        return msgspec.json.decode(next(line for line in lines if line.startswith("{")))["result"], lines

    runs = RUNS[service.name, transport]
    for (method, _), (result, lines) in zip(runs, await asyncio.gather(*(inspect(*run) for run in runs)), strict=True):
        if method == LIST:
            assert service.call[0] in [tool["name"] for tool in result["tools"]]
            issues = [line for line in lines if line.strip().startswith("Issue:")]
            assert [line for line in issues if not any(words in line for words in service.allowed)] == []
        else:
            [(member, [first])] = service.output.items()
            assert not result["isError"]
            assert result["structuredContent"][member][0].items() >= first.items()
