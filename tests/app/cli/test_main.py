"""The console script, and commands that run to the end of a process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests import warm
from tests.app.cli.invoking import invoking
from tests.crooked_mcp import SUM, TOOLS
from tests.process import HOTEL, bespeak
from tests.runtime.bindings.mcp.servers import SCRIPT

from bespeak.app.cli.import_ import import_
from bespeak.app.cli.lint import lint
from bespeak.app.cli.main import COMMANDS
from bespeak.app.cli.review import review
from bespeak.app.server.local import connect_local
from bespeak.app.server.mcp_stdio import ClientBackend
from bespeak.contract.mcp_tool import SCHEMA, admit_partial, make_tools
from bespeak.errors import ConfigError

pytestmark = pytest.mark.process


def test_help_lists_every_command_by_task() -> None:
    result = bespeak("--help")
    assert result.returncode == 0
    for name, entry in COMMANDS.items():
        assert name in result.stdout
        assert entry.section in result.stdout


# Each command begins with nothing but the program imported, to show that it imports what it needs.
HELP_OF_EACH = """
import os, sys
from bespeak.app.cli.main import main
for name in sys.argv[1:]:
    pid = os.fork()
    if not pid:
        sys.argv[1:] = [name, "--help"]
        main()
        os._exit(3)
    print(name, "ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def test_every_command_starts_and_has_help() -> None:
    command = [sys.executable, "-c", HELP_OF_EACH, *COMMANDS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.stderr == ""
    printed = re.split(r"^(\S+ ended with \d+)$\n?", result.stdout, flags=re.MULTILINE)
    assert printed[1::2] == [f"{name} ended with 0" for name in COMMANDS]
    assert [text for text in printed[:-1:2] if "Usage:" not in text] == []


@pytest.mark.parametrize("arguments", [["nonsense"], ["serve"], ["call", "agtp://x"], ["--nonsense"]])
def test_wrong_usage_is_exit_code_2_without_a_trace(arguments: list[str]) -> None:
    result = bespeak(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr


def test_version_help_and_a_suggestion_for_a_mistyped_command_are_printed() -> None:
    assert "Did you mean 'lint'?" in bespeak("lnt", "menu.agis").stderr
    assert "0.1.0" in bespeak("--version").stdout
    assert "Language Server Protocol" in bespeak("lsp", "--help").stdout


def test_closed_pipe_is_not_an_error() -> None:
    result = subprocess.run(
        f"{sys.executable} -m bespeak catalog list | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [["catalog", "list"], ["keys", "new"], ["--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_output_device_exits_with_two(arguments: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "bespeak", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (result.returncode, result.stderr) == (2, "bespeak: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("address", ["a..b:1", "127.0.0.1:" + "9" * 5000])
def test_invalid_address_exits_with_two(address: str) -> None:
    result = bespeak("serve", str(HOTEL), "--agtp", address, "--insecure", "--store", "memory")
    assert result.returncode == 2
    assert "internal error" not in result.stderr
    assert len(result.stderr.splitlines()[-1]) < 300


@pytest.mark.parametrize(("arguments", "code"), [("lint - <&-", 1), ("format - <&-", 1), ("lint . >&-", 0)])
def test_closed_stream_is_treated_as_empty(tmp_path: Path, arguments: str, code: int) -> None:
    command = f"{sys.executable} -m bespeak {arguments}"
    result = subprocess.run(command, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert "internal error" not in result.stderr
    assert result.returncode == code


@pytest.mark.parametrize("arguments", ["lint", "explain P302", "serve ."])
def test_deleted_current_folder_is_reported(tmp_path: Path, arguments: str) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m bespeak {arguments}"
    result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "bespeak: the current folder no longer exists. Change to another one.\n"


def test_a_shell_completes_commands() -> None:
    words = {"COMP_WORDS": "bespeak cases ac", "COMP_CWORD": "2", "_BESPEAK_COMPLETE": "bash_complete"}
    command = [str(Path(sys.executable).parent / "bespeak")]
    done = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "plain,accept\n"


WITHOUT = """
import sys
sys.modules["pygls"] = None
sys.argv = ["bespeak", "lsp"]
from bespeak.app.cli.main import main
main()
"""


def message(**fields: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def test_missing_extra_is_reported_with_the_install_command() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'bespeak[lsp]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_protocol_session_exits_with_zero() -> None:
    said = (
        message(id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
        + message(method="initialized", params={})
        + message(id=2, method="shutdown")
        + message(method="exit")
    )
    done = subprocess.run([warm.command(), "lsp"], input=said, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"Content-Length: ")
    assert b'"serverInfo"' in done.stdout


def test_exit_without_shutdown_exits_with_one() -> None:
    said = message(id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    done = subprocess.run(
        [warm.command(), "lsp"], input=said + message(method="exit"), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 1


COMMAND = shlex.join([sys.executable, "-S", str(SCRIPT)])


run = invoking(import_, "mcp", raises=True, standalone_mode=False)


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
        assert (await client.request("CALCULATE", "/sum", {"a": 2, "b": 3})).output == {"sum": 5}
        wrong = await client.request("CALCULATE", "/sum", {"a": "x"})
        assert (wrong.status, wrong.error and wrong.error.code) == (422, "input-validation-failed")
        assert (await client.request("REMOVE", "/note", {"note": "1"})).status == 455


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
