"""Parsing of a handler's docstring: intent, outcome, parameters and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

_HEADINGS: Final = {
    "outcome": "outcome",
    "errors": "errors",
    "args": "parameters",
    "arguments": "parameters",
    "parameters": "parameters",
    "returns": "other",
    "raises": "other",
    "example": "other",
    "examples": "other",
    "note": "other",
    "notes": "other",
}
_HEADING: Final = re.compile(r"([A-Za-z]+):(?:\s+(.*))?")
_ENTRY: Final = re.compile(r"(\s*)([A-Za-z_][A-Za-z0-9_.-]*)(?:\s*\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Prose:
    """A parsed docstring."""

    intent: str = ""
    """The first paragraph."""
    outcome: str = ""
    """The paragraph that begins with `Outcome:`."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The entries under `Args:`."""
    errors: dict[str, str] = field(default_factory=dict)
    """The entries under `Errors:`."""


@lru_cache(maxsize=1024)
def parse_docstring(text: str | None) -> Prose:
    """Parse a docstring. Text outside the first paragraph and the known headings is for people only.

    Cached: functions made by a factory, possibly thousands, share one docstring.
    """
    parts: dict[str, list[str]] = {"intent": [], "outcome": [], "parameters": [], "errors": [], "other": []}
    current = "intent"
    for line in inspect.cleandoc(text or "").splitlines():
        heading = _HEADING.fullmatch(line)
        if heading and heading[1].lower() in _HEADINGS:
            current = _HEADINGS[heading[1].lower()]
            parts[current].append(heading[2] or "")
        elif not line.strip() and current in ("intent", "outcome") and any(parts[current]):
            current = "other"
        else:
            parts[current].append(line)
    return Prose(
        intent=_joined(parts["intent"]),
        outcome=_joined(parts["outcome"]),
        parameters=_entries(parts["parameters"]),
        errors=_entries(parts["errors"]),
    )


def _joined(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _entries(lines: Iterable[str]) -> dict[str, str]:
    """Parse `name: text` entries; a line indented deeper than the first entry continues the one before."""
    found: dict[str, list[str]] = {}
    margin: int | None = None
    name = ""
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry and (margin is None or len(entry[1]) <= margin):
            margin, name = len(entry[1]), entry[2]
            found[name] = [entry[3]]
        elif name and line.strip():
            found[name].append(line)
    return {name: _joined(texts) for name, texts in found.items()}
