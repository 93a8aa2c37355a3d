"""Reports on the terminal and in files: choose the format and the colours."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import click

from bespeak.errors import ConfigError
from bespeak.text.diagnostics.report import Report
from bespeak.text.diagnostics.reporters import FORMATS, reporter
from bespeak.text.diagnostics.text import Style

_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "info": {"fg": "blue", "bold": True},
    "place": {"bold": True},
    "frame": {"fg": "cyan"},
    "label": {"fg": "cyan", "bold": True},
}


def default_format() -> str:
    """Choose annotations in a GitHub workflow, else the full text format."""
    in_workflow = os.environ.get("GITHUB_ACTIONS") == "true" and not sys.stdout.isatty()
    return "github" if in_workflow else "full"


def style() -> Style | None:
    """Return the terminal style; None in a pipe unless FORCE_COLOR is set, and None if NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or not (os.environ.get("FORCE_COLOR") or sys.stdout.isatty()):
        return None
    return lambda text, role: click.style(text, **_COLOURS[role])


def print_report(report: Report, name: str, *, quiet: bool = False, err: bool = False) -> None:
    """Print the report to standard output, or to standard error with `err`."""
    if name == "full":
        from bespeak.text.diagnostics.reporters.full import render as full  # noqa: PLC0415 - a run uses one format

        text = full(report, style(), quiet=quiet)
    elif name == "concise":
        from bespeak.text.diagnostics.reporters.concise import render as concise  # noqa: PLC0415

        text = concise(report, quiet=quiet)
    else:
        text = reporter(name)(report)
    # color=True: click would strip colours in a pipe even with FORCE_COLOR.
    click.echo(text, nl=False, color=True, err=err)


def write_report(report: Report, name: str, file: Path) -> None:
    """Write the report to a file."""
    try:
        file.write_text(reporter(name)(report), "utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror or error}") from error


def parse_outputs(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> list[tuple[str, Path]]:
    """Parse the values of `--output FORMAT=FILE` for click."""
    pairs: list[tuple[str, Path]] = []
    for value in values:
        name, _, file = value.partition("=")
        if not file or name not in FORMATS:
            raise click.BadParameter(f"{value!r} is not FORMAT=FILE; FORMAT is one of {', '.join(FORMATS)}")
        pairs.append((name, Path(file)))
    return pairs
