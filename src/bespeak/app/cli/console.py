"""What people see: the same text on a terminal, where it has colours, and in a pipe, where it has none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from bespeak.documents.files.positions import with_positions
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.printable import printable
from bespeak.text.diagnostics.text import full

_CONTROLS: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Controls that JSON does not make anyone escape, though terminals obey them."""


def console(*, stderr: bool = False) -> Console:
    """A console that never cuts or folds: lines stay lines for whoever reads them next."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """A value as indented JSON, coloured on a terminal."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode().translate(_CONTROLS)
    out = console()
    if out.is_terminal:
        out.print(Syntax(text, "json", background_color="default", word_wrap=True))
    else:
        click.echo(text)


def print_findings(findings: Iterable[Diagnostic]) -> None:
    """Findings on the error stream, each with the line it is about and what to do."""
    text = full(with_positions(findings))
    if text:
        click.echo(text + "\n", err=True)


def print_lines(lines: Iterable[Text]) -> None:
    """Styled lines: coloured in a terminal, plain text in a pipe, never cut or wrapped to a width."""
    console().print(Text("\n").join(lines))


def line(*parts: str | tuple[str, str]) -> Text:
    """One line of texts and (text, style) pairs, without what could steer a terminal."""
    return Text.assemble(
        *(printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in parts)
    )
