"""Result of a tool as the output of an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.mcp_content import CONTENT
from bespeak.text.diagnostics.printable import printable
from bespeak.text.reading.json_data import RepeatedKeyError, decode_json

WRAPPED: Final = "result"
"""Field for structured content that is not an object, as MCP servers themselves name it."""
_LONGEST_ERROR: Final = 2_000


def read_output(result: Mapping[str, Any], *, carries: bool = True) -> dict[str, Any]:
    """Return the structured content, else a single text that is a JSON object, else the blocks of content.

    Images, audio and resources beside structured content are added to it, if the output `carries` them.
    """
    blocks = result.get("content") or []
    if result.get("structuredContent") is not None:
        content = result["structuredContent"]
        output = content if isinstance(content, dict) else {WRAPPED: content}
        beside = carries and CONTENT not in output and any(block.get("type") != "text" for block in blocks)
        return {**output, CONTENT: blocks} if beside else output
    if len(blocks) == 1 and blocks[0].get("type") == "text":
        data = _json(blocks[0].get("text", ""))
        if isinstance(data, dict) and not (carries and CONTENT in data):
            return data
    return {CONTENT: blocks}


def error_text(result: Mapping[str, Any]) -> str:
    """Return the text of a result that is an error, on one line."""
    texts = [block.get("text", "") for block in result.get("content") or [] if block.get("type") == "text"]
    said = printable(" ".join(" ".join(texts).split()))
    return f"{said[:_LONGEST_ERROR]}..." if len(said) > _LONGEST_ERROR else said


def _json(text: str) -> Any:
    try:
        return decode_json(text.encode())
    except (msgspec.DecodeError, RepeatedKeyError, UnicodeError, RecursionError):
        return None
