"""`bespeak mcp install`: real files of four clients, and the server that a written entry starts."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.app.cli.invoking import invoking
from tests.cases import rows

from bespeak.app.cli.main import bespeak

APP = """
from bespeak import App

app = App("Rooms", server_id="rooms.example", operator="Tests", contact="ops@rooms.example")

@app.endpoint("QUERY", "/rooms", impact="informational", scopes=["rooms:read"],
              intent="Find rooms.", outcome="The rooms are returned.")
def rooms() -> dict[str, list[str]]:
    return {"rooms": ["12"]}
"""
FILES = {
    "claude": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of a user on Linux; the app is in the current folder."""
    for name in ("XDG_CONFIG_HOME", "BESPEAK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "rooms.py").write_text(APP)
    monkeypatch.chdir(work)
    return tmp_path / "home"


install = invoking(bespeak, "mcp", "install")


def servers(path: Path) -> Any:
    data = json.loads(path.read_text())
    return data.get("mcpServers") or data["servers"]


@pytest.mark.parametrize("client", FILES)
def test_a_service_is_added_to_each_client(home: Path, client: str) -> None:
    done = install(client, "rooms.py", "--as", "claude", "--scope", "rooms:read", "--scope", "rooms:write", code=0)
    entry = servers(home / FILES[client])["rooms"]
    assert entry["command"] == sys.executable
    target = str(home.parent / "work" / "rooms.py")
    authority = ["--as", "claude", "--scope", "rooms:read", "--scope", "rooms:write"]
    assert entry["args"] == ["-m", "bespeak", "mcp", target, *authority]
    assert f"Added rooms to {home / FILES[client]}." in done.output


def test_nothing_is_written_in_a_dry_run(home: Path) -> None:
    path = home / FILES["cursor"]
    path.parent.mkdir(parents=True)
    path.write_text(
        '{\n  "mcpServers": {\n    "other": {\n      "env": {"KEY": "secret"},\n      "url": "x"\n    }\n  }\n}\n'
    )
    before = path.read_bytes()
    done = install("cursor", "rooms.py", "--dry-run")
    assert (done.exit_code, path.read_bytes()) == (0, before)
    assert [line for line in done.output.splitlines() if line.startswith("+ ")][-1].startswith('+    "rooms": {')
    assert "secret" not in done.output
    assert list(path.parent.iterdir()) == [path]


def test_the_file_before_the_change_is_kept(home: Path) -> None:
    path = home / FILES["claude-code"]
    home.mkdir()
    path.write_bytes(b'\xef\xbb\xbf{"numStartups": 12, "mcpServers": {"x": {"command": "npx"}}}\r\n')
    path.chmod(0o600)
    before = path.read_bytes()
    install("claude-code", "rooms.py", code=0)
    backup = path.with_name(".claude.json.bak")
    assert backup.read_bytes() == before
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, backup)] == [0o600, 0o600]
    assert path.read_bytes().startswith(
        b'\xef\xbb\xbf{"numStartups": 12, "mcpServers": {"x": {"command": "npx"}, "rooms"'
    )
    assert path.read_bytes().endswith(b"\r\n")
    assert "already" in install("claude-code", "rooms.py").output
    assert backup.read_bytes() == before


def test_a_file_with_comments_is_refused_with_the_entry_to_paste(home: Path) -> None:
    path = Path(".vscode/mcp.json")
    path.parent.mkdir()
    path.write_text('{\n  // ours\n  "servers": {}\n}\n')
    done = CliRunner(catch_exceptions=True).invoke(bespeak, ["mcp", "install", "vscode", "rooms.py", "--project"])
    message = str(done.exception)
    assert "was not changed: it is not valid JSON: line 2, column 3" in message
    assert '"command": ' in message
    assert path.read_text() == '{\n  // ours\n  "servers": {}\n}\n'


@rows(
    "client, reference",
    ("claude-code", "${BESPEAK_TOKEN}"),
    ("cursor", "${env:BESPEAK_TOKEN}"),
    ("vscode", "${input:rooms-bespeak-token}"),
)
def test_the_variable_of_a_token_is_written_but_never_the_token(
    home: Path, client: str, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BESPEAK_TOKEN", "s3cret")
    assert install(client, "rooms.py", "--env", "API_KEY").exit_code == 0
    path = home / FILES[client]
    assert servers(path)["rooms"]["env"]["BESPEAK_TOKEN"] == reference
    assert list(servers(path)["rooms"]["env"]) == ["BESPEAK_TOKEN", "API_KEY"]
    assert "s3cret" not in path.read_text()


def test_paths_of_options_are_absolute(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_TOKEN", "s3cret")
    Path("token").write_text("s3cret")
    options = ("--token-file", "token", "--store", "rooms.db", "--timeout", "5")
    assert install("claude", "rooms.py", *options, "--name", "hotel").exit_code == 0
    args = servers(home / FILES["claude"])["hotel"]["args"]
    work = Path.cwd()
    expected = ["--store", str(work / "rooms.db"), "--token-file", str(work / "token"), "--timeout", "5.0"]
    assert args[3:] == [str(work / "rooms.py"), *expected]


def test_module_is_found_from_any_folder_and_a_live_service_is_bridged(home: Path) -> None:
    assert install("cursor", "rooms:app").exit_code == 0
    entry = servers(home / FILES["cursor"])["rooms"]
    assert entry["args"][3:] == ["rooms:app", "--store", str(Path.cwd() / "bespeak.db")]
    assert entry["env"] == {"PYTHONPATH": str(Path.cwd())}
    assert install("cursor", "agtp://rooms.acme.example", "--scope", "rooms:read").exit_code == 0
    entry = servers(home / FILES["cursor"])["rooms-acme-example"]
    assert entry["args"][3:] == ["agtp://rooms.acme.example", "--scope", "rooms:read"]


def test_the_url_of_an_mcp_server_is_for_the_client_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_TOKEN", "s3cret")
    install("claude-code", "https://rooms.example/mcp", "--remote", "--scope", "rooms:read", "--project", code=0)
    assert servers(Path(".mcp.json"))["rooms-example"] == {
        "type": "http",
        "url": "https://rooms.example/mcp",
        "headers": {"Authority-Scope": "rooms:read", "Authorization": "Bearer ${BESPEAK_TOKEN}"},
    }


@rows(
    "arguments, message",
    (("claude", "rooms.py", "--env", "KEY"), "Claude Desktop does not pass KEY on"),
    (("claude", "rooms.py", "--project"), "Claude Desktop has no configuration for a project"),
    (("claude", "https://rooms.example/mcp", "--remote"), "as a connector in its settings"),
    (("cursor", "rooms.py", "--remote"), "--remote takes the https URL"),
    (("cursor", "https://ann:pw@rooms.example/mcp", "--remote"), "without credentials"),
    (("cursor", "https://[rooms/mcp", "--remote"), "--remote takes the https URL"),
    (("cursor", "https://rooms.example/mcp", "--remote", "--insecure"), "--insecure is for a server"),
    (("cursor", "rooms.py", "--env", "KEY=value"), "without its value"),
    (("cursor", "rooms.py", "--name", "my rooms"), "--name must be"),
    (("cursor", "nothing.py"), "nothing to serve at 'nothing.py'"),
    (("cursor", "rooms.py", "--store", "postgresql://a:pw@h/d"), "--store contains a password"),
    (("emacs", "rooms.py"), "'emacs' is not one of 'claude', 'claude-code', 'cursor', 'vscode'"),
)
def test_what_a_client_cannot_do_is_refused(home: Path, arguments: tuple[str, ...], message: str) -> None:
    done = install(*arguments)
    assert done.exit_code != 0
    assert message in f"{done.output} {done.exception}"
    assert not home.exists()


def test_install_has_help_of_its_own() -> None:
    done = install("--help")
    assert "Usage: bespeak mcp install [OPTIONS] CLIENT SERVICE" in done.output
    assert "--agent-id" in done.output


@pytest.mark.anyio
@pytest.mark.process
async def test_a_written_entry_starts_the_server(home: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    assert install("claude", "rooms:app", "--as", "tests", "--scope", "rooms:read").exit_code == 0
    entry = servers(home / FILES["claude"])["rooms"]
    env = {
        **os.environ,
        **entry["env"],
        "PYTHONPATH": f"{entry['env']['PYTHONPATH']}:{os.environ.get('PYTHONPATH', '')}",
    }
    started = StdioServerParameters(command=entry["command"], args=entry["args"], env=env, cwd="/")
    with Path(os.devnull).open("w") as unread:
        async with Client(stdio_client(started, errlog=unread)) as client:
            found = await client.call_tool("query_rooms", {})
    assert found.structured_content == {"rooms": ["12"]}
