"""The entry of a server in the configuration of an MCP client. No entry holds a secret: it names the variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bespeak.documents.mcp_clients.client import McpClient

_BESPEAK: Final = ("-m", "bespeak", "mcp")
"""First arguments of the interpreter in an entry for a process."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry, and the inputs it refers to."""

    value: Mapping[str, Any]
    inputs: tuple[Mapping[str, Any], ...] = ()


def started_entry(
    client: McpClient, name: str, command: Sequence[str], environment: Mapping[str, str], variables: Iterable[str]
) -> Entry:
    """Build the entry for `bespeak mcp`, which the client starts.

    `command` is the interpreter and the arguments of `bespeak mcp`; `variables` are passed on to the process.
    """
    references, inputs = _refer(client, name, variables)
    value: dict[str, Any] = {"command": command[0], "args": [*_BESPEAK, *command[1:]]}
    env = {**environment, **references}
    return Entry({**_transport(client, "stdio"), **value, **({"env": env} if env else {})}, inputs)


def remote_entry(client: McpClient, name: str, url: str, headers: Mapping[str, str], token: str | None) -> Entry:
    """Build the entry for the URL of an MCP server; `token` is the variable with the bearer token, if there is one."""
    references, inputs = _refer(client, name, () if token is None else (token,))
    sent = dict(headers)
    if token is not None:
        sent["Authorization"] = f"Bearer {references[token]}"
    return Entry({**_transport(client, "http"), "url": url, **({"headers": sent} if sent else {})}, inputs)


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
