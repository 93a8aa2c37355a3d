"""Terminal output: coloured on a terminal, plain in a pipe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.text import Text

from bespeak.documents.deployment.folder import with_positions
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable
from bespeak.text.diagnostics.reporters.text import full

_REORDERING: Final = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_REORDERING)}
"""Characters that JSON leaves unescaped but terminals interpret: control characters, and changes of direction."""


def console(*, stderr: bool = False) -> Console:
    """Create a console that never truncates or wraps lines, so that other programs can read them."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as indented JSON, coloured on a terminal."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode().translate(_CONTROLS)
    out = console()
    if out.is_terminal:
        from rich.syntax import Syntax  # noqa: PLC0415 - it takes longer to import than most commands run

        out.print(Syntax(text, "json", background_color="default", word_wrap=True))
    else:
        click.echo(text)


def print_findings(findings: Iterable[Diagnostic]) -> None:
    """Print findings to standard error, each with its source line and help text."""
    text = full(with_positions(findings))
    if text:
        click.echo(text + "\n", err=True)


def print_lines(lines: Iterable[Text]) -> None:
    """Print styled lines: coloured on a terminal, plain in a pipe, never truncated or wrapped."""
    console().print(Text("\n").join(lines))


def line(*parts: str | tuple[str, str]) -> Text:
    """Build a line from texts and (text, style) pairs; escape terminal control characters."""
    return Text.assemble(
        *(printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in parts)
    )
