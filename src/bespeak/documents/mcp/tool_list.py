"""The tools of an MCP server, as it lists them. Every field is the server's claim, not a fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """One tool."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    hints: Mapping[str, bool] = field(default_factory=dict)
    """Annotations that are given: readOnlyHint, destructiveHint, idempotentHint, openWorldHint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One prompt or resource, as the server lists it. Every field is the server's claim, not a fact."""

    kind: str
    """`prompt` or `resource`."""
    name: str
    uri: str = ""
    title: str = ""
    description: str = ""
    arguments: tuple[tuple[str, str, bool], ...] = ()
    """Arguments of a prompt: name, description, and whether it is required."""

    @property
    def key(self) -> str:
        """Name by which the server is asked for it."""
        return self.uri if self.kind == "resource" else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """All tools of a server, in its order."""

    tools: tuple[ListedTool, ...]
    title: str = ""
    version: str = ""
    instructions: str = ""
    """What the server tells models about itself."""
    source: str = ""
    """Command line or address, as the user gave it."""
    offers: tuple[Offer, ...] = ()
    """Prompts and resources."""
