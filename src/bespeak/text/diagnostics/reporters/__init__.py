"""Reporters: output formats for people, editors and CI systems."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from bespeak.text.diagnostics.report import Report

Reporter = Callable[[Report], str]  # function that formats a report; the text ends with a line feed unless it is empty
FORMATS: Final[dict[str, str]] = {
    "full": "text.render_full",
    "concise": "text.render_concise",
    "json": "json_report.render_json",
    "jsonl": "json_report.render_jsonl",
    "sarif": "json_report.render_sarif",
    "github": "text.render_github",
    "gitlab": "json_report.render_gitlab",
    "junit": "json_report.render_junit",
}  # module and function of each format, imported on demand


def reporter(name: str) -> Reporter:
    module, _, function = FORMATS[name].partition(".")
    return cast("Reporter", getattr(import_module(f"{__name__}.{module}"), function))
