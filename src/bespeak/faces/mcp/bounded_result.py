"""Results within a length: what is too long is cut, marked, and kept so that the rest can be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import msgspec

from bespeak.contract.cutting import Cut, cut, cut_to_fit
from bespeak.contract.mcp_content import CONTENT, blocks_in, text_of
from bespeak.contract.mcp_result import result_of
from bespeak.contract.mcp_tool import PARTIAL, RESULT, Tool
from bespeak.contract.schema.members import Members
from bespeak.faces.mcp.kept_result import LIFETIME, KeptResults
from bespeak.faces.mcp.paging import paging_of
from bespeak.faces.mcp.shape import FIELDS_MEMBER, Shape, shaping_of
from bespeak.protocol.exchange.outcome import Outcome

MOST_ERROR: Final = 10_000
"""Characters of a refusal: clients cut longer ones themselves, in the middle."""
_MARKER: Final = 2_000
"""Characters for the marker beside a cut output."""
_MOST_FIELDS: Final = 3


class Results:
    """Writes the results of one server: every way out leads through `write`."""

    def __init__(self, most: int, kept: KeptResults | None) -> None:
        """Bound results to a number of characters. `kept` is None if resources would not be found again."""
        self._most = most
        self.kept = kept
        self.fields = FIELDS_MEMBER
        """Where a caller asks for some members only, in words."""

    def write(
        self,
        tool: Tool,
        outcome: Outcome,
        arguments: Mapping[str, Any] | None = None,
        caller: str = "",
        shape: Shape | None = None,
    ) -> dict[str, Any]:
        """Build the result of a call by a caller, in the shape that was asked for."""
        result = result_of(tool, outcome)
        if shape is not None and not result["isError"]:
            outcome, result = self._shaped(tool, outcome, result, shape)
        if result["isError"]:
            text = result["content"][0]["text"]
            return result if len(text) <= MOST_ERROR else _bound_error(tool, result, text)
        if sum(len(text_of(block)) for block in result["content"]) > self._most:
            return self._bound(tool, outcome, result, arguments or {}, caller)
        return result

    def _shaped(
        self, tool: Tool, outcome: Outcome, result: dict[str, Any], shape: Shape
    ) -> tuple[Outcome, dict[str, Any]]:
        """Apply what the caller has asked for. A selection that lacks required members is a partial result."""
        output = shape.apply(tool, outcome.output)
        less = replace(outcome, output=output)
        structured = {RESULT: output} if tool.wraps else output
        if tool.output is None or tool.output.is_valid(structured):
            return less, result_of(tool, less)
        partial = {"output": output, "fields": shape.fields}
        return less, {**result, **_contents({PARTIAL: partial})}

    def _bound(
        self, tool: Tool, outcome: Outcome, result: dict[str, Any], arguments: Mapping[str, Any], caller: str
    ) -> dict[str, Any]:
        whole, media = result["content"][0].get("text", ""), []
        if tool.blocks and blocks_in(outcome.output) is not None:
            # Anything but text stays whole; the binding bounds it.
            media = [block for block in result["content"] if not text_of(block)]
            texts = [block for block in result["content"] if text_of(block)]
            outcome = replace(outcome, output={**outcome.output, CONTENT: texts})
            whole = msgspec.json.encode(outcome.output).decode()
        found = cut_to_fit(outcome.output, self._most - _MARKER, shaping_of(tool).members)
        paged = _page(tool, arguments, found)
        uri = None
        if paged is None and self.kept is not None:
            media_type = "text/plain" if isinstance(outcome.output, str) else "application/json"
            uri = self.kept.keep(whole, media_type, caller)
        rest = self._rest(tool, paged, uri, whole)
        partial = {"output": found.output, "left_out": found.left_out, "rest": rest}
        bounded = _contents({PARTIAL: partial})
        return {**result, **bounded, "content": [*bounded["content"], *media]}

    def _rest(self, tool: Tool, paged: str | None, uri: str | None, whole: str) -> str:
        """Say how to get what was left out."""
        if paged is not None:
            return paged
        names = list(islice(_fields(shaping_of(tool).members), _MOST_FIELDS))
        ways = [f"Ask for some members only, with {self.fields}: {', '.join(names)}."] if names else []
        if uri is not None and self.kept is not None:
            parts = self.kept.parts(whole)
            ways.append(
                f"Read the resource {uri} for all {len(whole)} characters, or {uri}/1 to {uri}/{parts} for parts, "
                f"within {LIFETIME // 60:.0f} minutes."
            )
        return " ".join(ways) or "Call again with arguments that match less."


def _fields(members: Members) -> Iterator[str]:
    """Yield members that can be asked for, those of a list with its name."""
    for name in members.reachable:
        inner = members.step(name)
        within = [] if inner is None else inner.reachable
        yield from (f"{name}.{one}" for one in within) if within else (name,)


def _page(tool: Tool, arguments: Mapping[str, Any], found: Cut) -> str | None:
    """Say how to page through a cut list; None if something else was cut too, or there is no way."""
    if len(found.gaps) != 1 or found.gaps[0].what != "elements":
        return None
    return paging_of(tool.endpoint).advise(arguments, found.gaps[0].kept)


def _contents(structured: dict[str, Any]) -> dict[str, Any]:
    text = msgspec.json.encode(structured).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}


def _bound_error(tool: Tool, result: dict[str, Any], text: str) -> dict[str, Any]:
    """Cut a refusal. Its code, message and remedy are short, so details are what is lost."""
    anything = shaping_of(tool).members.anything
    found = cut(msgspec.json.decode(text), MOST_ERROR, anything)
    return {**result, "content": [{"type": "text", "text": msgspec.json.encode(found.output).decode()}]}
