"""Entries of servers: a process or a URL, and variables in the way of each client."""

from __future__ import annotations

import pytest

from bespeak.documents.mcp.clients import CLIENTS, is_ours, remote_entry, started_entry

COMMAND = ("/opt/python", "/srv/rooms.py", "--as", "claude")


@pytest.mark.parametrize(("client", "kind"), [("claude", None), ("cursor", None), ("vscode", "stdio")])
def test_an_entry_starts_the_interpreter(client: str, kind: str | None) -> None:
    entry = started_entry(CLIENTS[client], "rooms", COMMAND, {}, ())
    expected = {"command": "/opt/python", "args": ["-m", "bespeak", "mcp", "/srv/rooms.py", "--as", "claude"]}
    assert entry.value == expected | ({} if kind is None else {"type": kind})
    assert is_ours(entry.value)


@pytest.mark.parametrize(
    ("client", "reference"),
    [("claude-code", "${TOKEN}"), ("cursor", "${env:TOKEN}"), ("vscode", "${input:rooms-token}")],
)
def test_a_variable_is_referred_to(client: str, reference: str) -> None:
    entry = started_entry(CLIENTS[client], "rooms", COMMAND, {"PYTHONPATH": "/srv"}, ("TOKEN",))
    assert entry.value["env"] == {"PYTHONPATH": "/srv", "TOKEN": reference}
    remote = remote_entry(CLIENTS[client], "rooms", "https://rooms.example/mcp", {"Agent-ID": "a"}, "TOKEN")
    assert remote.value["headers"] == {"Agent-ID": "a", "Authorization": f"Bearer {reference}"}


def test_vs_code_asks_for_a_variable_without_showing_it() -> None:
    [one] = started_entry(CLIENTS["vscode"], "rooms", COMMAND, {}, ("TOKEN",)).inputs
    assert one == {"type": "promptString", "id": "rooms-token", "description": "TOKEN of rooms", "password": True}


@pytest.mark.parametrize(("client", "kind"), [("claude-code", {"type": "http"}), ("cursor", {})])
def test_a_remote_server_is_a_url(client: str, kind: dict[str, str]) -> None:
    entry = remote_entry(CLIENTS[client], "rooms", "https://rooms.example/mcp", {}, None)
    assert entry.value == {"url": "https://rooms.example/mcp"} | kind


@pytest.mark.parametrize("other", [None, "text", {}, {"args": "mcp"}, {"command": "npx", "args": ["-y", "rooms"]}])
def test_entries_of_others_are_recognised(other: object) -> None:
    assert not is_ours(other)
