"""Decisions of an earlier import: what a person has reviewed stays, and a tool that has changed is reviewed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import McpTool
from bespeak.contract.mcp_content import without_content
from bespeak.documents.adoption.facade import Facade
from bespeak.documents.adoption.guess import Guess
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An endpoint that a person has reviewed, and its file."""

    endpoint: Endpoint
    file: str
    """Path of the file in the folder."""
    text: str

    def renew(self, made: Facade) -> Facade:
        """Return the facade of the same tool as it is now, with the reviewed decisions.

        If its schemas are those that were reviewed, the file stays as it is unless the server is reached in another
        way. Otherwise it waits for a review again.
        """
        new, old = made.endpoint, self.endpoint
        assert isinstance(new.handler, McpTool)
        assert isinstance(old.handler, McpTool)
        same = old.handler.mcp.input_digest == new.handler.mcp.input_digest
        # Only tools have a digest.
        same = same and (bool(new.handler.mcp.tool) or old.input_schema == new.input_schema)
        # Earlier imports did not declare the content blocks of a tool without a schema.
        undeclared = {"type": "object"} == old.output_schema == without_content(new.output_schema)
        same = same and (old.output_schema == new.output_schema or undeclared)
        if same:
            handler = replace(old.handler, mcp=new.handler.mcp)
            kept = handler == old.handler
            endpoint = replace(old, handler=handler)
            return replace(made, endpoint=endpoint, guesses=(), file=self.file, text=self.text if kept else "")
        guess = Guess(
            at="/input_schema",
            text="the schemas of the tool as they are now",
            why="they have changed since the review",
            confidence=0.5,
            risk="high",
        )
        endpoint = replace(
            old,
            handler=new.handler,
            input_schema=new.input_schema,
            output_schema=new.output_schema,
            reviewed=False,
        )
        return replace(made, endpoint=endpoint, guesses=(guess,), file=self.file, text="")


def reviewed_tools(endpoints: Iterable[Endpoint], folder: Path) -> Mapping[str, Reviewed]:
    """Return the reviewed endpoints of a folder by the tools that they call."""
    found: dict[str, Reviewed] = {}
    for endpoint in endpoints:
        if not isinstance(endpoint.handler, McpTool) or not endpoint.reviewed or endpoint.location is None:
            continue
        path = Path(endpoint.location.file)
        text = read_text(path)
        if not isinstance(text, Diagnostic) and path.resolve().is_relative_to(folder.resolve()):
            file = path.resolve().relative_to(folder.resolve()).as_posix()
            called = endpoint.handler.mcp
            found.setdefault(called.tool or called.named, Reviewed(endpoint, file, text))
    return found
