"""`bespeak import mcp` with a live server: its folder is served, linted, reviewed and imported again."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.crooked_mcp import SUM, TOOLS
from tests.runtime.bindings.mcp.servers import SCRIPT

from bespeak.app.cli.import_ import import_
from bespeak.app.cli.lint import lint
from bespeak.app.cli.review import review
from bespeak.app.server.local import connect_local
from bespeak.app.server.mcp_backend import ClientBackend
from bespeak.contract.mcp_tool import SCHEMA, admit_partial, make_tools
from bespeak.errors import ConfigError

pytestmark = pytest.mark.process

COMMAND = shlex.join([sys.executable, "-S", str(SCRIPT)])


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(import_, ["mcp", *map(str, arguments)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("imported") / "out"
    run(COMMAND, "-o", out)
    return out


@pytest.mark.requirement("AGIS-C.3-1")
def test_folder_is_clean_of_errors(folder: Path) -> None:
    result = CliRunner().invoke(lint, [str(folder), "--format", "json"])
    assert result.exit_code == 0, result.output
    assert [finding for finding in json.loads(result.stdout)["findings"] if finding["severity"] == "error"] == []


@pytest.mark.anyio
async def test_tools_come_back_with_their_names_and_schemas(folder: Path) -> None:
    async with connect_local(folder, scopes=["crooked:write"], agent_id="ab" * 32) as client:
        backend = ClientBackend(client, await client.discover())
        tools = make_tools(await backend.endpoints())
    assert set(tools) == set(TOOLS)
    for name, tool in tools.items():
        assert {**TOOLS[name]["inputSchema"], "additionalProperties": False} == tool.entry["inputSchema"]
        blocks = {"type": "object", "properties": {"content": SCHEMA}}
        assert dict(tool.endpoint.output_schema) == TOOLS[name].get("outputSchema", blocks)
        assert tool.entry.get("outputSchema") == (admit_partial(SUM) if "outputSchema" in TOOLS[name] else None)


@pytest.mark.anyio
async def test_endpoint_calls_the_tool_through_the_gates(folder: Path) -> None:
    async with connect_local(folder, scopes=["crooked:read"], agent_id="ab" * 32) as client:
        reply = await client.request("CALCULATE", "/sum", {"a": 2, "b": 3})
        assert reply.output == {"sum": 5}
        wrong = await client.request("CALCULATE", "/sum", {"a": "x"})
        assert (wrong.status, wrong.error and wrong.error.code) == (422, "input-validation-failed")
        denied = await client.request("REMOVE", "/note", {"note": "1"})
        assert denied.status == 455


def test_second_import_keeps_what_was_reviewed(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--force"):
        run(COMMAND, "-o", folder)
    out = tmp_path / "out"
    run(COMMAND, "-o", out)
    CliRunner().invoke(review, [str(out), "--accept", "REMOVE", "/note"], standalone_mode=False)
    accepted = (out / "endpoints/delete-note.toml").read_text()
    assert "reviewed = false" not in accepted
    summary: dict[str, Any] = json.loads(run(COMMAND, "-o", out, "--force", "--json").stdout)
    assert summary["endpoints"] == len(TOOLS)
    assert (out / "endpoints/delete-note.toml").read_text() == accepted
    assert "reviewed = false" in (out / "endpoints/add.toml").read_text()
