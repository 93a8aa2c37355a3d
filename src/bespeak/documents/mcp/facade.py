"""The tools of an MCP server as endpoints in front of it: one for each tool, with every guess (AGIS C.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import TOOL_ERROR, McpTool
from bespeak.contract.mcp_server import McpServer, schema_digest
from bespeak.documents.adoption.error_names import shape_errors
from bespeak.documents.adoption.facade import Facade, Variable
from bespeak.documents.adoption.guess import Guess, LeftOut
from bespeak.documents.adoption.judgement import Judgement, choose_scopes, judge_all
from bespeak.documents.adoption.naming import unused, words
from bespeak.documents.mcp.candidates import as_candidates
from bespeak.documents.mcp.reviewed import Reviewed
from bespeak.documents.mcp.tool_list import ListedTool, ToolList
from bespeak.documents.mcp.tool_schema import fit_input, fit_output
from bespeak.text.diagnostics.brief import brief
from bespeak.text.language.instruction import instruction

_TIMEOUT: Final = 60.0
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
"""Tool names that AGIS 6.2 allows and that models' services take."""
_LONGEST: Final = 64


def make_facades(
    listed: ToolList, server: McpServer, catalog: Catalog, reviewed: Mapping[str, Reviewed] | None = None
) -> tuple[list[Facade], list[LeftOut]]:
    """Make the endpoints of all tools, in their order. `server` names the server; its tool is filled in.

    `reviewed` are endpoints of an earlier import by their tools, whose decisions are kept.
    """
    known = reviewed or {}
    left_out: list[LeftOut] = []
    for count, tool in enumerate(listed.tools, 1):
        spoken = instruction(tool.name, field=True)
        if spoken is not None:
            left_out.append(LeftOut(f"tool {count} of the list", f"its name is a text that {spoken.kind}"))
    if left_out:
        named = tuple(tool for tool in listed.tools if instruction(tool.name, field=True) is None)
        listed = replace(listed, tools=named)
    pairs = as_candidates(listed)
    occupied = [known[tool.name].endpoint.key for tool in listed.tools if tool.name in known]
    judgements = judge_all([candidate for candidate, _ in pairs], catalog, occupied)
    names = tool_names([tool.name for tool in listed.tools])
    maker = _Maker(listed, server)
    facades: list[Facade] = []
    for tool, (_, name), judgement, published in zip(listed.tools, pairs, judgements, names, strict=True):
        try:
            made = maker.make(tool, judgement, published, name.namespace)
            facades.append(known[tool.name].renew(made) if tool.name in known else made)
        except Exception as error:  # noqa: BLE001 - one tool must not stop the import of the others
            why = f"bespeak failed with {type(error).__name__}: {brief(str(error))}; this is a bug, please report it"
            left_out.append(LeftOut(tool.name, why))
    return facades, left_out


def tool_names(names: Sequence[str]) -> list[str]:
    """Return the mcp_tool_name of each tool: its own name if AGIS 6.2 allows that, else its words in snake_case."""
    taken = {name for name in names if _NAME.fullmatch(name)}
    found: list[str] = []
    for name in names:
        chosen = name
        if _NAME.fullmatch(name) is None:
            chosen = unused("_".join(words(name))[:_LONGEST].strip("_") or "tool", taken)
            taken.add(chosen)
        found.append(chosen)
    return found


class _Maker:
    """Makes the endpoints of one server."""

    def __init__(self, listed: ToolList, server: McpServer) -> None:
        self._title = listed.title
        self._server = server
        self._variables = tuple(Variable(name, "a variable that the MCP server needs") for name in server.variables)

    def make(self, tool: ListedTool, judgement: Judgement, published: str, namespace: str) -> Facade:
        """Make the endpoint of one tool."""
        given, lost = fit_input(tool.input_schema)
        returned, unsaid = fit_output(tool.output_schema)
        has_credential = bool(self._variables or self._server.token_file)
        scopes, scope_guess = choose_scopes(self._title, judgement.semantic.impact, has_credential=has_credential)
        errors = shape_errors(judgement.candidate, has_credential=has_credential).errors
        handler = McpTool(
            mcp=replace(self._server, tool=tool.name, input_digest=schema_digest(tool.input_schema)),
            timeout_seconds=_TIMEOUT,
        )
        endpoint = Endpoint(
            method=judgement.method,
            path=judgement.path.path,
            description=judgement.description,
            semantic=replace(judgement.semantic, mcp_tool_name=published),
            input_schema=given,
            output_schema=returned,
            errors=(DeclaredError(TOOL_ERROR, "The tool reports a failure; the message says which."), *errors),
            handler=handler,
            namespace=namespace or None,
            required_scopes=scopes,
            reviewed=False,
        )
        guesses = (
            *judgement.guesses,
            *scope_guess,
            *_losses("/input_schema", lost),
            *_losses("/output_schema", unsaid),
            *_renamed(tool.name, published),
        )
        return Facade(judgement.candidate, endpoint, guesses, self._variables)


def _losses(at: str, lost: Sequence[str]) -> Iterator[Guess]:
    for loss in lost:
        unsafe = "text" in loss or "characters" in loss or "encoded" in loss
        why = "the server's text is not fit for a contract" if unsafe else "it cannot be served as it is"
        yield Guess(at=at, text=f"without {loss}", why=why, confidence=0.5, risk="high" if unsafe else "medium")


def _renamed(name: str, published: str) -> Iterator[Guess]:
    if published != name:
        text, why = f"published as {published}", f"the name {brief(name)} is not one that AGIS 6.2 allows"
        yield Guess(at="/semantic/mcp_tool_name", text=text, why=why, confidence=0.9)
