"""The files of an import: endpoints, an AGIS document, and what to review."""

from __future__ import annotations

from pathlib import Path

from bespeak.contract.mcp_server import McpServer
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.mcp.deployment import import_tools
from bespeak.documents.mcp.tool_list import ListedTool, ToolList

SERVER = McpServer(tool="", command="uvx", args=("notes-mcp",), env=("NOTES_KEY",))
TOOLS = (
    ListedTool(name="create_note", description="Create a note.", input_schema={"properties": {"text": {}}}),
    ListedTool(name="deleteNote", description="Delete a note.", hints={"destructiveHint": True}),
)


def test_files_can_be_read_back_as_the_same_endpoints(tmp_path: Path) -> None:
    imported = import_tools(ToolList(title="Notes", version="1.2", tools=TOOLS), SERVER)
    for name, text in imported.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    deployment, findings = read_deployment(tmp_path)
    assert [finding for finding in findings if finding.severity == "error"] == []
    found = {endpoint.key: endpoint.handler for endpoint in deployment.endpoints}
    assert found == {endpoint.key: endpoint.handler for endpoint in imported.service.endpoints}
    assert sorted(imported.files) == sorted(
        (*(".env.example", "REVIEW.md", "bespeak.toml", "service.agis"), "endpoints/create-note.toml",
         "endpoints/delete-note.toml")
    )  # fmt: skip


def test_review_says_what_the_tools_are_and_what_to_set() -> None:
    files = import_tools(ToolList(title="Notes", tools=TOOLS), SERVER).files
    assert "derived from the tools of an MCP server" in files["REVIEW.md"]
    assert "`NOTES_KEY`" in files["REVIEW.md"]
    assert "Changed paths" not in files["REVIEW.md"]
    assert "NOTES_KEY=\n" in files[".env.example"]
    assert files["service.agis"].startswith("# Made by `bespeak import mcp`")


def test_server_without_tools_has_no_document() -> None:
    assert "service.agis" not in import_tools(ToolList(tools=()), SERVER).files
