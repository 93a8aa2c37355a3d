"""A tool without annotations claims nothing."""

from __future__ import annotations

from bespeak.documents.mcp.tools import ListedTool, ToolList


def test_absent_parts_of_a_tool_are_empty() -> None:
    listed = ToolList(tools=(ListedTool(name="ping"),))
    [tool] = listed.tools
    assert (tool.title, tool.description, dict(tool.input_schema), tool.output_schema) == ("", "", {}, None)
    assert dict(tool.hints) == {}
