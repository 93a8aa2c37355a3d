"""What is drafted can be copied and served."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.documents.agis_documents import booking

from bespeak.app.authoring.agis_contract import draft
from bespeak.app.server.target import load_target
from bespeak.documents.agis.document import read_agis
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import Tree

INPUTS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"room_id": {"type": "string"}}, "required": ["room_id"]},
    {
        "type": "object",
        "properties": {
            "note": {},
            "nights": {"type": "integer", "default": 1},
            "guests": {"type": "array", "items": {"type": "string"}},
            "either": {"type": ["string", "null"]},
            "rate": {"type": "number"},
        },
        "required": ["guests", "either"],
    },
    {"type": "object", "properties": {"room-id": {"type": "string"}, "values": {"type": "string"}}, "required": []},
    {"type": "object", "properties": {"class": {"type": "string"}}, "required": []},
    {"type": "object", "properties": {name: {} for name in ("a b", "value", "give", "whole_input")}, "required": []},
    {"type": "object", "properties": {}},
]


def drafted(folder: Path, schema: dict[str, Any]) -> dict[str, str]:
    """The files of a draft by their names; the document stands beside them."""
    document = booking()
    document["endpoints"][0]["input"] = schema
    text = msgspec.json.encode(document).decode()
    (folder / "rooms.agis").write_text(text)
    tree = parse_json(text, "rooms.agis")
    assert isinstance(tree, Tree)
    read, _ = read_agis(tree)
    assert read is not None
    text = draft("rooms.agis", read.endpoints[0].endpoint)
    parts = re.split(r"^# (\S+)$", text.replace("or write this file and serve it:", ""), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("schema", INPUTS)
@pytest.mark.parametrize("files", [("bespeak.toml", "handlers.py"), ("rooms.py",)], ids=["toml", "python"])
def test_copied_draft_binds_the_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], files: tuple[str, ...]
) -> None:
    texts = drafted(tmp_path, schema)
    for name in files:
        # Modules are kept by their names, and every case has its own.
        text = texts[name].replace('"handlers.', f'"handlers_{tmp_path.name}.')
        (tmp_path / name.replace("handlers", f"handlers_{tmp_path.name}")).write_text(text)
    monkeypatch.setattr("sys.path", [*sys.path])
    target = load_target(str(tmp_path / "rooms.agis"))
    assert [endpoint.key for endpoint in target.service.endpoints] == [("BOOK", "/room")]
    assert not [finding for finding in target.findings if finding.severity == "error"]
