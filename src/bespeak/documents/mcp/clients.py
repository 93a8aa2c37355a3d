"""MCP clients: where each keeps its configuration, and that file with an entry for one more server.

All other text of the file stays as it is. No entry holds a secret: it names the variable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.source.edit import edits
from bespeak.text.source.json_tree import JsonTree, parse_json
from bespeak.text.source.pointer import pointer
from bespeak.text.source.tree import Change, SyntaxFault, apply_edits


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    title: str  # name of the program
    section: str = "mcpServers"  # member of the configuration with the servers by name
    is_typed: bool = False  # True if an entry has a member `type` with its transport
    variable: str | None  # how an entry refers to an environment variable, with `{}` for its name; None if it cannot
    asks: bool = False  # True if the variable is an input of the configuration, for which the client asks its user
    takes_urls: bool = True  # True if an entry may be the URL of a server
    user: tuple[str, ...]  # path of the user's configuration, below the folder that `user_folder` names
    in_home: bool = False  # True if that path is below the home folder, not below the folder of programs' settings
    project: tuple[str, ...] | None  # path of a project's configuration in its folder; None if the client has none
    advice: str  # what the user does afterwards


CLIENTS: Final[Mapping[str, McpClient]] = {  # clients by the name that users type
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


_BESPEAK: Final = ("-m", "bespeak", "mcp")  # first arguments of the interpreter in an entry for a process


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """An entry, and the inputs it refers to."""

    value: Mapping[str, Any]
    inputs: tuple[Mapping[str, Any], ...] = ()


def started_entry(
    client: McpClient, name: str, command: Sequence[str], environment: Mapping[str, str], variables: Iterable[str]
) -> ServerEntry:
    """Build the entry for `bespeak mcp`, which the client starts; `variables` are passed on to the process."""
    references, inputs = _refer(client, name, variables)
    value: dict[str, Any] = {"command": command[0], "args": [*_BESPEAK, *command[1:]]}
    env = {**environment, **references}
    return ServerEntry({**_transport(client, "stdio"), **value, **({"env": env} if env else {})}, inputs)


def remote_entry(client: McpClient, name: str, url: str, headers: Mapping[str, str], token: str | None) -> ServerEntry:
    """Build the entry for the URL of an MCP server; `token` is the variable with the bearer token, if there is one."""
    references, inputs = _refer(client, name, () if token is None else (token,))
    sent = dict(headers)
    if token is not None:
        sent["Authorization"] = f"Bearer {references[token]}"
    return ServerEntry({**_transport(client, "http"), "url": url, **({"headers": sent} if sent else {})}, inputs)


def is_ours(entry: object) -> bool:
    """Return True if an entry starts `bespeak mcp`, so that a new one may replace it."""
    found = entry.get("args") if isinstance(entry, dict) else None
    return isinstance(found, list) and tuple(found[: len(_BESPEAK)]) == _BESPEAK


def _transport(client: McpClient, name: str) -> dict[str, str]:
    return {"type": name} if client.is_typed else {}


def _refer(
    client: McpClient, name: str, variables: Iterable[str]
) -> tuple[dict[str, str], tuple[Mapping[str, Any], ...]]:
    """Return the references to variables, and the inputs for which the client asks."""
    if client.variable is None:
        return {}, ()
    if not client.asks:
        return {variable: client.variable.format(variable) for variable in variables}, ()
    ids = {variable: f"{name}-{variable.lower().replace('_', '-')}" for variable in variables}
    inputs = tuple(
        {"type": "promptString", "id": one, "description": f"{variable} of {name}", "password": True}
        for variable, one in ids.items()
    )
    return {variable: client.variable.format(one) for variable, one in ids.items()}, inputs


_INPUTS: Final = "inputs"


def add_server(text: str, file: str, client: McpClient, name: str, entry: ServerEntry) -> str | Fault:
    """Return the text of a configuration with a server, or the reason why it cannot be added.

    An entry of that name is replaced if it starts `bespeak mcp` or has the same URL.
    """
    if not text.strip():
        return write_configuration(client, name, entry)
    tree = parse_json(text, file)
    if isinstance(tree, SyntaxFault):
        at = f"line {tree.location.line}, column {tree.location.column}: " if tree.location.line else ""
        return Fault(f"it is not valid JSON: {at}{tree.message}")
    data = tree.data
    if not isinstance(data, dict) or not isinstance(servers := data.get(client.section, {}), dict):
        return Fault(f"it is not an object with an object `{client.section}`")
    before = servers.get(name)
    same_url = isinstance(before, dict) and "url" in before and before["url"] == entry.value.get("url")
    if before is not None and not is_ours(before) and not same_url:
        return Fault(f"it has another server named {name}; choose another name with --name")
    for change in _changes(data, client, name, entry):
        found = edits(tree, change)
        changed = None if found is None else parse_json(apply_edits(tree.text, found), file)
        if not isinstance(changed, JsonTree):
            return Fault(f"`{change.key or change.at}` has another form than expected")
        tree = JsonTree(changed.data, changed.text, file, crlf=tree.crlf)
    return tree.text.replace("\n", "\r\n") if tree.crlf else tree.text


def write_configuration(client: McpClient, name: str, entry: ServerEntry) -> str:
    """Write a configuration with nothing but a server."""
    inputs = {_INPUTS: list(entry.inputs)} if entry.inputs else {}
    return json.dumps({**inputs, client.section: {name: entry.value}}, indent=2, ensure_ascii=False) + "\n"


def _changes(data: Mapping[str, Any], client: McpClient, name: str, entry: ServerEntry) -> Iterator[Change]:
    """Yield the changes, each for the document that the one before it leaves."""
    known = data.get(_INPUTS)
    ids = [one.get("id") for one in known if isinstance(one, dict)] if isinstance(known, list) else []
    missing = [one for one in entry.inputs if one["id"] not in ids]
    if known is None and missing:
        yield Change("insert", "", missing, _INPUTS)
    else:
        yield from (Change("append", pointer((_INPUTS,)), one) for one in missing)
    if (servers := data.get(client.section)) is None:
        yield Change("insert", "", {name: entry.value}, client.section)
    elif name in servers:
        yield Change("replace", pointer((client.section, name)), entry.value)
    else:
        yield Change("insert", pointer((client.section,)), entry.value, name)
