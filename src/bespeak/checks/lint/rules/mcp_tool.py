"""J64x: MCP tools generated from a document have unique names (AGIS 6.2, appendix C)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from bespeak.checks.lint.subject import Context
from bespeak.contract.endpoint_names import default_tool_name
from bespeak.contract.policy import is_of_server
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared, Subject

_FIRST: Final = "endpoints:\n  - method: FIND\n    path: /room\n"

TAKEN: Final = Rule(
    ("J645", "mcp-tool-name-taken", "MUST", "AGIS 6.2"),
    "An mcp_tool_name is unique in the document.",
    why="MCP clients call tools by name; of two tools with the same name they see one or none.",
    bad=f"{_FIRST}  - method: SEARCH\n    path: /room\n    semantic: {{mcp_tool_name: find_room}}\n",
    good=f"{_FIRST}  - method: SEARCH\n    path: /room\n    semantic: {{mcp_tool_name: search_rooms}}\n",
)
SAME_DEFAULT: Final = Rule(
    ("J646", "same-default-tool-name", "SHOULD", "AGIS 6.2, C.2(a)"),
    "Endpoints whose tools would get the same name have an mcp_tool_name.",
    why="The default name is method and first segment, so FIND /room and FIND /room/{id} are both find_room.",
    bad=f"{_FIRST}  - method: FIND\n    path: /room/{{id}}\n",
    good=f"{_FIRST}  - method: FIND\n    path: /room/{{id}}\n    semantic: {{mcp_tool_name: find_room_by_id}}\n",
)


def check_document(subject: Subject, context: Context) -> Iterator[Diagnostic]:
    """Find tool names that two endpoints share."""
    takers: dict[str, Declared] = {}
    for declared in subject.endpoints:
        endpoint = declared.endpoint
        if subject.kind == "manifest" and is_of_server(*endpoint.key, endpoint.namespace):
            continue  # every server has it, and none serves it as a tool
        chosen = endpoint.semantic.mcp_tool_name
        name = chosen or default_tool_name(endpoint.method, endpoint.path)
        first = takers.setdefault(name, declared)
        if first is declared or first.endpoint.key == endpoint.key:
            continue  # a duplicate endpoint has its own finding
        other = first.endpoint.semantic.mcp_tool_name
        if chosen or other:
            at = declared if chosen else first
            message = f"{endpoint}: the MCP tool would be named {brief(name)}, as that of {first.endpoint} is"
            advice = "Write another mcp_tool_name."
            yield TAKEN.inside(at.pointer("/semantic/mcp_tool_name"), message, advice)
        else:
            message = f"{endpoint}: its MCP tool would be named {name}, as that of {first.endpoint} is"
            advice = "Give one of them an mcp_tool_name."
            yield SAME_DEFAULT.inside(declared.pointer("/path"), message, advice)
