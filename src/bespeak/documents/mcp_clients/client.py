"""MCP clients: where each keeps its configuration, and how it writes servers and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """One MCP client."""

    title: str
    """Name of the program."""
    section: str = "mcpServers"
    """Member of the configuration with the servers by name."""
    is_typed: bool = False
    """True if an entry has a member `type` with its transport."""
    variable: str | None
    """How an entry refers to an environment variable, with `{}` for its name; None if it cannot."""
    asks: bool = False
    """True if the variable is an input of the configuration, for which the client asks its user."""
    takes_urls: bool = True
    """True if an entry may be the URL of a server."""
    user: tuple[str, ...]
    """Path of the user's configuration, below the folder that `user_folder` names."""
    in_home: bool = False
    """True if that path is below the home folder, not below the folder of programs' settings."""
    project: tuple[str, ...] | None
    """Path of a project's configuration in its folder; None if the client has none."""
    advice: str
    """What the user does afterwards."""


CLIENTS: Final[Mapping[str, McpClient]] = {
    "claude": McpClient(
        title="Claude Desktop",
        variable=None,
        takes_urls=False,
        user=("Claude", "claude_desktop_config.json"),
        project=None,
        advice="Restart Claude Desktop.",
    ),
    "claude-code": McpClient(
        title="Claude Code",
        is_typed=True,
        variable="${{{}}}",
        user=(".claude.json",),
        in_home=True,
        project=(".mcp.json",),
        advice="Start a new session of Claude Code; /mcp shows its servers.",
    ),
    "cursor": McpClient(
        title="Cursor",
        variable="${{env:{}}}",
        user=(".cursor", "mcp.json"),
        in_home=True,
        project=(".cursor", "mcp.json"),
        advice="Enable it in the settings of Cursor, under MCP.",
    ),
    "vscode": McpClient(
        title="VS Code",
        section="servers",
        is_typed=True,
        variable="${{input:{}}}",
        asks=True,
        user=("Code", "User", "mcp.json"),
        project=(".vscode", "mcp.json"),
        advice="Start it in VS Code with the command MCP: List Servers.",
    ),
}
"""Clients by the name that users type."""


def user_folder(client: McpClient, platform: str, environ: Mapping[str, str]) -> Path:
    """Return the folder of the user's configuration; `platform` is that of `sys.platform`."""
    home = Path(environ.get("USERPROFILE" if platform == "win32" else "HOME") or Path.home())
    if client.in_home:
        return home
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    if platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
