"""Tools that a person judged, in `judged_tools.txt`, and the judgement of the importer on each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.handler import McpServer
from bespeak.documents.adoption.facade import Facade
from bespeak.documents.mcp.facade import make_facades
from bespeak.documents.mcp.tools import ListedTool, ToolList

TABLE: Final = Path(__file__).with_suffix(".txt")
HINTS: Final = {"R": "readOnlyHint", "D": "destructiveHint", "I": "idempotentHint", "O": "openWorldHint"}


@dataclass(frozen=True, slots=True)
class Judged:
    """One tool with every answer that the person accepted."""

    name: str
    hints: str
    description: str
    inputs: str
    verbs: str
    impacts: str
    paths: str
    intent: str

    def wrong(self, facade: Facade) -> list[str]:
        """Name the parts in which an endpoint differs from the judgement."""
        endpoint, semantic = facade.endpoint, facade.endpoint.semantic
        said = semantic.intent.lower()
        parts = {
            f"verb {endpoint.method}": endpoint.method in self.verbs.split(),
            f"impact {semantic.impact}": semantic.impact in self.impacts.split(),
            f"path {endpoint.path}": endpoint.path in self.paths.split(),
            f"intent {semantic.intent!r}": all(word in said for word in self.intent.split())
            and re.search(r"[(){}_]", said) is None,
        }
        return [part for part, is_right in parts.items() if not is_right]

    @property
    def tool(self) -> ListedTool:
        """The tool as a server lists it."""
        properties: dict[str, Any] = {}
        for field in self.inputs.replace("-", " ").split():
            name, _, values = field.partition("=")
            properties[name] = {"type": "string", **({"enum": values.split(",")} if values else {})}
        return ListedTool(
            name=self.name,
            description=self.description,
            input_schema={"type": "object", "properties": properties},
            hints={HINTS[letter.upper()]: letter.isupper() for letter in self.hints if letter != "-"},
        )


def read_table() -> dict[str, list[Judged]]:
    """Read the judged tools by their servers."""
    groups: dict[str, list[Judged]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            title = line[2:]
        elif line and not line.startswith("#"):
            groups.setdefault(title, []).append(Judged(*(cell.strip() for cell in line.split("|"))))
    return groups


def judge_group(title: str, group: Sequence[Judged]) -> Iterator[tuple[Judged, Facade]]:
    """Import the tools of one server."""
    listed = ToolList(title=title, tools=tuple(one.tool for one in group))
    facades, left_out = make_facades(listed, McpServer(tool="", command="serve"), load_bundled())
    assert not left_out, left_out
    yield from zip(group, facades, strict=True)
