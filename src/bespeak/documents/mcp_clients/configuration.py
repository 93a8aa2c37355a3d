"""The configuration of an MCP client with one more server. All other text of the file stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.documents.mcp_clients.client import McpClient
from bespeak.documents.mcp_clients.entry import Entry, is_ours
from bespeak.protocol.fault import Fault
from bespeak.text.source.change import Change
from bespeak.text.source.edit import apply_edits, edits
from bespeak.text.source.json_tree import JsonTree, parse_json
from bespeak.text.source.pointer import pointer
from bespeak.text.source.tree import SyntaxFault

_INPUTS: Final = "inputs"


def add_server(text: str, file: str, client: McpClient, name: str, entry: Entry) -> str | Fault:
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
    if before is not None and not is_ours(before) and not _has_url(before, entry):
        return Fault(f"it has another server named {name}; choose another name with --name")
    for change in _changes(data, client, name, entry):
        found = edits(tree, change)
        changed = None if found is None else parse_json(apply_edits(tree.text, found), file)
        if not isinstance(changed, JsonTree):
            return Fault(f"`{change.key or change.at}` has another form than expected")
        tree = JsonTree(changed.data, changed.text, file, crlf=tree.crlf)
    return tree.text.replace("\n", "\r\n") if tree.crlf else tree.text


def write_configuration(client: McpClient, name: str, entry: Entry) -> str:
    """Write a configuration with nothing but a server."""
    inputs = {_INPUTS: list(entry.inputs)} if entry.inputs else {}
    return json.dumps({**inputs, client.section: {name: entry.value}}, indent=2, ensure_ascii=False) + "\n"


def _changes(data: Mapping[str, Any], client: McpClient, name: str, entry: Entry) -> Iterator[Change]:
    """Yield the changes, each for the document that the one before it leaves."""
    known = data.get(_INPUTS)
    ids = [one.get("id") for one in known if isinstance(one, dict)] if isinstance(known, list) else []
    missing = [one for one in entry.inputs if one["id"] not in ids]
    if known is None and missing:
        yield Change("insert", "", missing, _INPUTS)
    else:
        yield from (Change("append", pointer((_INPUTS,)), one) for one in missing)
    servers = data.get(client.section)
    if servers is None:
        yield Change("insert", "", {name: entry.value}, client.section)
    elif name in servers:
        yield Change("replace", pointer((client.section, name)), entry.value)
    else:
        yield Change("insert", pointer((client.section,)), entry.value, name)


def _has_url(before: object, entry: Entry) -> bool:
    return isinstance(before, dict) and "url" in before and before["url"] == entry.value.get("url")
