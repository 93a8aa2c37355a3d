"""A run's findings in the formats that people, editors and CI systems read, one module for each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from bespeak.text.diagnostics.report import Report

Reporter = Callable[[Report], str]
"""Writes a report; the text ends with a line feed unless it is empty."""

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
"""The module of each format. It is imported when its format is asked for."""


def reporter(name: str) -> Reporter:
    """The reporter of a format."""
    return cast("Reporter", import_module(f"{__name__}.{FORMATS[name]}").render)
