"""A second import keeps what a person has reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.contract.handler import McpServer
from bespeak.documents.adoption.deployment import Imported
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.mcp.facade import Reviewed, import_tools, reviewed_tools
from bespeak.documents.mcp.tools import ListedTool, ToolList

SERVER = McpServer(tool="", command="serve")
FILE = "endpoints/create-note.toml"


def listed(**properties: str) -> ToolList:
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}
    tools = (ListedTool(name="create_note", input_schema=schema), ListedTool(name="get_note"))
    return ToolList(title="Notes", tools=tools)


def reviewed(folder: Path) -> dict[str, Reviewed]:
    return dict(reviewed_tools(read_deployment(folder)[0].endpoints, folder))


def write(imported: Imported, folder: Path) -> None:
    for name, text in imported.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in which a person has reviewed one of two endpoints."""
    write(import_tools(listed(text="string"), SERVER), tmp_path)
    path = tmp_path / FILE
    text = path.read_text().replace('impact = "irreversible"', 'impact = "reversible"  # we can undo it')
    text = text.replace('path = "/note"', 'path = "/memo"').replace("reviewed = false\n", "")
    path.write_text(text)
    return tmp_path


def test_only_reviewed_endpoints_are_kept(folder: Path) -> None:
    assert list(reviewed(folder)) == ["create_note"]


def test_file_of_an_unchanged_tool_stays_as_it_is(folder: Path) -> None:
    again = import_tools(listed(text="string"), SERVER, reviewed=reviewed(folder))
    assert again.files[FILE] == (folder / FILE).read_text()
    assert [str(facade.endpoint) for facade in again.facades] == ["CREATE /memo", "FETCH /note"]


def test_server_that_is_reached_in_another_way_keeps_the_decisions(folder: Path) -> None:
    again = import_tools(listed(text="string"), McpServer(tool="", command="other"), reviewed=reviewed(folder))
    assert 'command = "other"' in again.files[FILE]
    assert 'impact = "reversible"' in again.files[FILE]
    assert "reviewed = false" not in again.files[FILE]


def test_changed_tool_keeps_the_decisions_and_waits_for_a_review(folder: Path) -> None:
    again = import_tools(listed(text="string", title="string"), SERVER, reviewed=reviewed(folder))
    text = again.files[FILE]
    assert "reviewed = false" in text
    assert 'path = "/memo"' in text
    assert "title" in text
    assert "they have changed since the review" in text


def test_new_tool_does_not_take_the_place_of_a_reviewed_one(folder: Path) -> None:
    known = reviewed(folder)
    more = ToolList(title="Notes", tools=(ListedTool(name="create_memo"), *listed(text="string").tools))
    again = import_tools(more, SERVER, reviewed=known)
    places = [str(facade.endpoint) for facade in again.facades]
    assert places[1] == "CREATE /memo"
    assert len(set(places)) == 3
