"""J64x: MCP tools generated from a document have unique names (AGIS 6.2, appendix C)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bespeak.checks.lint.subject import Declared, LintContext, Subject
from bespeak.contract.endpoint_names import default_tool_name
from bespeak.contract.policy import is_of_server
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief

TAKEN: Final = Rule("J645", "mcp-tool-name-taken", "MUST", "AGIS 6.2")
SAME_DEFAULT: Final = Rule("J646", "same-default-tool-name", "SHOULD", "AGIS 6.2, C.2(a)")


def check_document(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
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
        if chosen or first.endpoint.semantic.mcp_tool_name:
            at = declared if chosen else first
            message = f"{endpoint}: the MCP tool would be named {brief(name)}, as that of {first.endpoint} is"
            yield TAKEN.inside(at.pointer("/semantic/mcp_tool_name"), message, "Write another mcp_tool_name.")
        else:
            message = f"{endpoint}: its MCP tool would be named {name}, as that of {first.endpoint} is"
            yield SAME_DEFAULT.inside(declared.pointer("/path"), message, "Give one of them an mcp_tool_name.")
