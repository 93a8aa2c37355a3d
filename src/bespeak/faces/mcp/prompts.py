"""MCP prompts: for each namespace of a service, what it does there and which tool does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.capability_id import group_of
from bespeak.contract.mcp_tool import Tool

TASK: Final = "task"
"""Name of the one argument."""
LONGEST_TASK: Final = 4_000
_LONGEST: Final = 12_000
"""Maximum characters of the text without the task."""
_LONGEST_LINE: Final = 400

_IMPACTS: Final[Mapping[str, str]] = {
    "informational": "These only read:",
    "reversible": "These change something that can be undone:",
    "irreversible": "These cannot be undone:",
}


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """What a service does in one namespace."""

    entry: Mapping[str, Any]
    """Entry of prompts/list."""
    text: str

    def message(self, task: str) -> str:
        """Return the text of the message; `task` may be empty."""
        return f"{self.text}\n\nTask: {task}" if task else self.text


def make_prompts(service: str, tools: Iterable[Tool]) -> dict[str, Prompt]:
    """Make a prompt for each namespace, by name, in the order of the names.

    The namespace of an endpoint without one is the first segment of its path.
    """
    groups: dict[str, list[Tool]] = {}
    for tool in tools:
        groups.setdefault(group_of(tool.endpoint), []).append(tool)
    return {name: _prompt(service, name, groups[name]) for name in sorted(groups)}


def _prompt(service: str, name: str, tools: list[Tool]) -> Prompt:
    entry = {
        "name": name,
        "title": f"{service}: {name}",
        "description": f"Explains what {service} does with {name}, and which of {len(tools)} tools to use for what.",
        "arguments": [{"name": TASK, "description": "What is to be done, in your words.", "required": False}],
    }
    head = f"{service} offers these tools for {name}. Choose a tool by what it does, and pass only declared arguments."
    tail = (
        "Read before you change something. If a call is refused, its result has a code and a remedy: follow it. "
        "Never repeat a call that may have changed something, unless the tool is idempotent."
    )
    lines, room = [], _LONGEST - len(head) - len(tail)
    left = len(tools)
    for line, is_tool in _lines(tools):
        room -= len(line) + 1
        if room < 0:
            lines.append(f"And {left} more: see the list of tools.")
            break
        lines.append(line)
        left -= is_tool
    return Prompt(entry, "\n".join((head, *lines, "", tail)))


def _lines(tools: list[Tool]) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and whether each is a tool: the harmless ones first, deprecated ones last."""
    for impact, heading in _IMPACTS.items():
        chosen = [tool for tool in tools if _impact(tool) == impact]
        chosen.sort(key=lambda tool: tool.endpoint.deprecated is not None)
        if chosen:
            yield f"\n{heading}", False
            yield from ((_line(tool), True) for tool in chosen)


def _impact(tool: Tool) -> str:
    """Return the impact of a tool: the worst one if the service does not say it."""
    impact = tool.endpoint.semantic.impact
    return impact if impact in _IMPACTS else "irreversible"


def _line(tool: Tool) -> str:
    """Describe a tool on one line: the lines of its description, its required arguments, whether it may be repeated."""
    described = str(tool.entry["description"]).splitlines()
    required = tool.endpoint.input_schema.get("required") or []
    notes = [line if line.endswith((".", "!", "?", "]")) else f"{line}." for line in described if line]
    if isinstance(required, list) and required:
        notes.append(f"Requires {', '.join(map(str, required))}.")
    if tool.endpoint.error_names:
        notes.append(f"May fail with {', '.join(tool.endpoint.error_names)}.")
    if tool.endpoint.semantic.is_idempotent and tool.endpoint.semantic.impact != "informational":
        notes.append("It is idempotent.")
    text = f"- {tool.name}: {' '.join(notes)}"
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 3]}..."
