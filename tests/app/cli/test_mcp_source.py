"""The server argument of `bespeak import mcp`: what may be written to files, and what a failure says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.mcp_source import named_server, open_tools
from bespeak.contract.handler import McpServer
from bespeak.errors import ConfigError


def test_command_is_one_argument_in_quotes_or_several() -> None:
    expected = McpServer(tool="", command="npx", args=("-y", "a b"))
    assert named_server(("npx -y 'a b'",)) == expected
    assert named_server(("npx", "-y", "a b")) == expected


def test_relative_files_are_looked_for_in_the_folder_of_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").touch()
    assert named_server(("python server.py",)).folder == str(tmp_path)
    assert named_server(("python other.py",)).folder == ""


def test_url_takes_headers_and_a_token_file(tmp_path: Path) -> None:
    server = named_server(("https://x.example/mcp",), headers=("X-Key: ${KEY}",), token_file=str(tmp_path / "t"))
    assert (server.url, dict(server.headers)) == ("https://x.example/mcp", {"X-Key": "${KEY}"})
    assert server.token_file == str(tmp_path / "t")


@pytest.mark.parametrize(
    ("words", "options", "said"),
    [
        (("http://x.example/mcp",), {}, "Give an https:// URL"),
        (("https://u:p@x.example/mcp",), {}, "without a user"),
        (("https://x.example/mcp",), {"env": ("KEY",)}, "--env is for a command"),
        (("serve",), {"headers": ("A: b",)}, "are for a URL"),
        (("https://x.example/mcp",), {"headers": ("oops",)}, "must be 'NAME: VALUE'"),
        (("https://x.example/mcp",), {"headers": ("Authorization: Bearer k",)}, "would be written to files"),
        (("serve --api-key k1",), {}, "The value of '--api-key' would be written to files"),
    ],
)
def test_what_cannot_be_written_to_files_is_refused(words: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        named_server(words, **options)


def test_missing_program_and_variable_are_told_before_anything_is_started() -> None:
    with pytest.raises(ConfigError, match="'surely-not-installed' is not found"):
        open_tools(McpServer(tool="", command="surely-not-installed"), "x")
    with pytest.raises(ConfigError, match="'SURELY_NOT_SET', which is not set"):
        open_tools(McpServer(tool="", command="sh", env=("SURELY_NOT_SET",)), "x")


@pytest.mark.process
def test_server_that_does_not_speak_mcp_is_told_with_its_words() -> None:
    with pytest.raises(CommandFailedError, match=r"(?s)the server cannot be reached: .* It said: no such thing"):
        open_tools(McpServer(tool="", command="sh", args=("-c", "echo no such thing >&2; exit 1")), "sh")
