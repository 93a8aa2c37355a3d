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


TAKEN: Final = Rule(("J645", "mcp-tool-name-taken", "MUST", "AGIS 6.2"), "An mcp_tool_name is unique in the document.")
SAME_DEFAULT: Final = Rule(
    ("J646", "same-default-tool-name", "SHOULD", "AGIS 6.2, C.2(a)"),
    "Endpoints whose tools would get the same name have an mcp_tool_name.",
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
