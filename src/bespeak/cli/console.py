"""What people see: the same text on a terminal, where it has colours, and in a pipe, where it has none."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from rich.console import Console
from rich.syntax import Syntax


def console(*, stderr: bool = False) -> Console:
    """A console that never cuts or folds: lines stay lines for whoever reads them next."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """A value as indented JSON, coloured on a terminal."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    out = console()
    if out.is_terminal:
        out.print(Syntax(text, "json", background_color="default", word_wrap=True))
    else:
        click.echo(text)
