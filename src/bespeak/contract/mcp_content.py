"""Content blocks of MCP in an output: texts, images, audio, resources and links to them, as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import McpTool

CONTENT: Final = "content"
"""Member of an output that holds the blocks."""
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}
"""Types of blocks, each with the texts that it must have."""
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "array",
    "description": "Content blocks of MCP. Images and audio have their data in Base64, and a mimeType.",
    "items": {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": list(KINDS)}},
        "required": ["type"],
    },
}
"""Schema of the member, by which a face that only knows the contract recognizes it."""


def carries_content(endpoint: Endpoint) -> bool:
    """Return True if the output may have blocks: its schema declares them, or leaves room for those of an upstream."""
    properties = endpoint.output_schema.get("properties")
    declared = properties.get(CONTENT) if isinstance(properties, Mapping) else None
    if declared is not None:
        return declares_content(declared)
    # A manifest does not tell whether the upstream speaks MCP.
    is_upstream = endpoint.handler.type == McpTool.type
    return is_upstream and endpoint.output_schema.get("additionalProperties") is not False


def declares_content(schema: Any) -> bool:
    """Return True for the schema of blocks, whatever an author has added to it."""
    for name in ("items", "properties", "type"):
        schema = schema.get(name) if isinstance(schema, Mapping) else None
    return isinstance(schema, Mapping) and schema.get("enum") == list(KINDS)


def without_content(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an output apart from its blocks."""
    members = {name: value for name, value in schema.get("properties", {}).items() if name != CONTENT}
    apart = {name: value for name, value in schema.items() if name != "properties"}
    return {**apart, "properties": members} if members else apart


def blocks_in(output: Any) -> list[dict[str, Any]] | None:
    """Return the blocks of an output; None if it has none, or some that no client could read."""
    blocks = output.get(CONTENT) if isinstance(output, dict) else None
    return blocks if isinstance(blocks, list) and all(map(_is_block, blocks)) else None


def text_of(block: Mapping[str, Any]) -> str:
    """Return the text that a block shows to a model; empty for other content."""
    shown = block.get("resource", block)
    return str(shown.get("text", ""))


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") not in KINDS:
        return False
    if block["type"] != "resource":
        return all(isinstance(block.get(name), str) for name in KINDS[block["type"]])
    resource = block.get("resource")
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        return False
    return isinstance(resource.get("text"), str) or isinstance(resource.get("blob"), str)
