"""Where MCP clients keep their configuration, on three platforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.documents.mcp.clients import CLIENTS, user_folder

ENVIRON = {
    "HOME": "/h/ann",
    "USERPROFILE": "/u/ann",
    "APPDATA": "/u/ann/Roaming",
    "XDG_CONFIG_HOME": "/h/ann/settings",
}


@pytest.mark.parametrize(
    ("name", "platform", "expected"),
    [
        ("claude", "darwin", "/h/ann/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude", "win32", "/u/ann/Roaming/Claude/claude_desktop_config.json"),
        ("claude", "linux", "/h/ann/settings/Claude/claude_desktop_config.json"),
        ("claude-code", "darwin", "/h/ann/.claude.json"),
        ("claude-code", "win32", "/u/ann/.claude.json"),
        ("cursor", "linux", "/h/ann/.cursor/mcp.json"),
        ("cursor", "win32", "/u/ann/.cursor/mcp.json"),
        ("vscode", "darwin", "/h/ann/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", "/u/ann/Roaming/Code/User/mcp.json"),
        ("vscode", "linux", "/h/ann/settings/Code/User/mcp.json"),
    ],
)
def test_the_environment_names_the_folder_of_the_user(name: str, platform: str, expected: str) -> None:
    client = CLIENTS[name]
    assert user_folder(client, platform, ENVIRON).joinpath(*client.user) == Path(expected)


@pytest.mark.parametrize(("platform", "expected"), [("win32", "/u/ann/AppData/Roaming"), ("linux", "/h/ann/.config")])
def test_without_a_folder_of_settings_it_is_in_the_home_folder(platform: str, expected: str) -> None:
    environ = {"HOME": "/h/ann", "USERPROFILE": "/u/ann"}
    assert user_folder(CLIENTS["vscode"], platform, environ) == Path(expected)
