"""Reporters: output formats for people, editors and CI systems, one module each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from bespeak.text.diagnostics.report import Report

Reporter = Callable[[Report], str]
"""Function that formats a report; the text ends with a line feed unless it is empty."""

FORMATS: Final[dict[str, str]] = {
    "full": "full",
    "concise": "concise",
    "json": "json_report",
    "jsonl": "jsonl",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
}
"""Module of each format, imported on demand."""


def reporter(name: str) -> Reporter:
    """Return the reporter of a format."""
    return cast("Reporter", import_module(f"{__name__}.{FORMATS[name]}").render)
