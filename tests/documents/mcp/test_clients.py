"""A server is added to a configuration, and nothing else of its text changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.documents.mcp.clients import (
    CLIENTS,
    ServerEntry,
    add_server,
    is_ours,
    remote_entry,
    started_entry,
    user_folder,
    write_configuration,
)
from bespeak.protocol.exchange.refusal import Fault

CURSOR, VSCODE = CLIENTS["cursor"], CLIENTS["vscode"]
ENTRY = ServerEntry({"command": "/opt/python", "args": ["-m", "bespeak", "mcp", "/srv/rooms.py"]})
WRITTEN = '"rooms": {"command": "/opt/python", "args": ["-m", "bespeak", "mcp", "/srv/rooms.py"]}'


def add(text: str, name: str = "rooms", entry: ServerEntry = ENTRY) -> str:
    after = add_server(text, "mcp.json", CURSOR, name, entry)
    assert isinstance(after, str), after
    return after


@rows(
    "before, after",
    ('{"mcpServers": {}}', '{"mcpServers": {%s}}'),
    ("{}", '{"mcpServers": {%s}}'),
    (
        '{\n\t"theme": 1.50,\n\t"mcpServers": {\n\t\t"x": {"a":1}\n\t},\n\t"last": "\\u00e9é"\n}\n',
        '{\n\t"theme": 1.50,\n\t"mcpServers": {\n\t\t"x": {"a":1},\n\t\t%s\n\t},\n\t"last": "\\u00e9é"\n}\n',
    ),
    ('{"b": [1,  2]}\r\n', '{"b": [1,  2], "mcpServers": {%s}}\r\n'),
)
def test_all_other_text_stays_as_it_is(before: str, after: str) -> None:
    assert add(before) == after % WRITTEN


@pytest.mark.parametrize("before", ["", " \n"])
def test_an_empty_file_becomes_a_configuration(before: str) -> None:
    assert json.loads(add(before)) == {"mcpServers": {"rooms": ENTRY.value}}
    assert add(before) == write_configuration(CURSOR, "rooms", ENTRY)


def test_entry_of_ours_or_with_the_same_url_is_replaced_in_its_place() -> None:
    before = add('{"mcpServers": {"rooms": {"command": "old", "args": ["-m", "bespeak", "mcp", "x"]}, "z": 1}}')
    assert before == f'{{"mcpServers": {{{WRITTEN}, "z": 1}}}}'
    assert add(before) == before
    entry = ServerEntry({"url": "https://rooms.example/mcp", "headers": {"Agent-ID": "a"}})
    after = add('{"mcpServers": {"rooms": {"url": "https://rooms.example/mcp"}}}', entry=entry)
    assert json.loads(after)["mcpServers"]["rooms"] == entry.value


@rows(
    "text, message",
    ('{"mcpServers": {"rooms": {"command": "npx"}}}', "another server named rooms"),
    ('{"mcpServers": {"rooms": {"url": "https://other.example"}}}', "another server named rooms"),
    ('{"mcpServers": []}', "not an object with an object `mcpServers`"),
    ("[]", "not an object"),
    ('{\n  // a comment\n  "mcpServers": {}\n}', "not valid JSON: line 2, column 3: a key is expected here"),
    ('{"mcpServers": {},}', "not valid JSON: line 1, column 18"),
    ('{"a": 1, "a": 2}', "is repeated"),
    ("{" * 20000, "not valid JSON"),
    ("[" * 20000 + "]" * 20000, "not valid JSON"),
)
def test_a_file_that_cannot_be_changed_safely_is_refused(text: str, message: str) -> None:
    fault = add_server(text, "mcp.json", CURSOR, "rooms", ENTRY)
    assert isinstance(fault, Fault)
    assert message in fault.message


def test_inputs_are_added_once() -> None:
    entry = started_entry(VSCODE, "rooms", ("/opt/python", "rooms.py"), {}, ("A", "B"))
    first = add_server('{"servers": {}}', "mcp.json", VSCODE, "rooms", entry)
    assert isinstance(first, str)
    assert [one["id"] for one in json.loads(first)["inputs"]] == ["rooms-a", "rooms-b"]
    assert add_server(first, "mcp.json", VSCODE, "rooms", entry) == first
    other = add_server('{"inputs": [{"id": "rooms-a"}]}', "mcp.json", VSCODE, "rooms", entry)
    assert isinstance(other, str)
    assert [one["id"] for one in json.loads(other)["inputs"]] == ["rooms-a", "rooms-b"]
    assert isinstance(add_server('{"inputs": 1}', "mcp.json", VSCODE, "rooms", entry), Fault)


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


ENVIRON = {"HOME": "/h/ann", "USERPROFILE": "/u/ann", "APPDATA": "/u/ann/Roaming", "XDG_CONFIG_HOME": "/h/ann/settings"}


@rows(
    "name, platform, expected",
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
)
def test_the_environment_names_the_folder_of_the_user(name: str, platform: str, expected: str) -> None:
    client = CLIENTS[name]
    assert user_folder(client, platform, ENVIRON).joinpath(*client.user) == Path(expected)


@pytest.mark.parametrize(("platform", "expected"), [("win32", "/u/ann/AppData/Roaming"), ("linux", "/h/ann/.config")])
def test_without_a_folder_of_settings_it_is_in_the_home_folder(platform: str, expected: str) -> None:
    environ = {"HOME": "/h/ann", "USERPROFILE": "/u/ann"}
    assert user_folder(CLIENTS["vscode"], platform, environ) == Path(expected)
