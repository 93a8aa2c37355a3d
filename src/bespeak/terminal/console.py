"""Terminal output: coloured on a terminal, plain in a pipe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import click
import msgspec
from rich.console import Console
from rich.text import Text

from bespeak.documents.deployment.folder import with_positions
from bespeak.terminal import Option, screen_width
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable
from bespeak.text.diagnostics.reporters.text import full

_REORDERING: Final = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_REORDERING)}
"""Characters that JSON leaves unescaped but terminals interpret: control characters, and changes of direction."""

_GAP: Final = re.compile(r"^ +| {2,}")  # space before a column of a line

Row = TypeVar("Row")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def choice_option(*names: str, of: Sequence[str], default: str, help: str) -> Option:  # noqa: A002 - as in click
    return click.option(*names, type=click.Choice(of), default=default, show_default=True, help=help)


def limit_option(nouns: str, default: int = 100) -> Option:
    help_text = f"Maximum number of {nouns}."
    return click.option("--limit", type=click.IntRange(1, 10_000), default=default, show_default=True, help=help_text)


def state_option(states: Sequence[str], default: str, help_text: str) -> Option:
    """Return the option --state of a list; `all` is added to the states."""
    return choice_option("--state", of=[*states, "all"], default=default, help=help_text)


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def console(*, stderr: bool = False) -> Console:
    """Create a console that never truncates or wraps lines, so that other programs can read them."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def members(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def print_json(value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode().translate(_CONTROLS)
    out = console()
    if out.is_terminal:
        from rich.syntax import Syntax  # noqa: PLC0415 - it takes longer to import than most commands run

        out.print(Syntax(text, "json", background_color="default", word_wrap=True))
    else:
        click.echo(text)


def print_findings(findings: Iterable[Diagnostic]) -> None:
    """Print findings to standard error, each with its source line and help text."""
    text = full(with_positions(findings), width=screen_width(stderr=True))
    if text:
        click.echo(text + "\n", err=True)


def print_lines(lines: Iterable[Text]) -> None:
    """Print styled lines: coloured and wrapped on a terminal, plain in a pipe, where programs read whole lines."""
    out = console()
    width = screen_width()
    if width is not None:
        lines = (part for one in lines for part in _wrapped(one, out, width))
    out.print(Text("\n").join(lines))


def _wrapped(text: Text, out: Console, width: int) -> Iterable[Text]:
    """Wrap a line at words. Further lines begin below the last column that begins in the left half."""
    if text.cell_len <= width:
        return (text,)
    columns = [found.end() for found in _GAP.finditer(text.plain) if found.end() <= width // 2]
    indent = columns[-1] if columns else 2
    head, rest = text.divide([indent])
    parts = rest.wrap(out, width - indent)
    return [Text.assemble(Text(" " * indent) if number else head, part) for number, part in enumerate(parts)]


def print_result(data: Any, lines: Iterable[Text], *, as_json: bool) -> None:
    if as_json:
        print_json(data)
    else:
        print_lines(lines)


def print_list(
    rows: Sequence[Row], as_dict: Callable[[Row], Any], summary: Callable[[Row], Text], nothing: str, *, as_json: bool
) -> None:
    """Print rows as a JSON list or as lines; print `nothing` if there are none."""
    if rows or as_json:
        print_result([as_dict(row) for row in rows] if as_json else None, map(summary, rows), as_json=as_json)
    else:
        click.echo(nothing)


def line(*parts: str | tuple[str, str]) -> Text:
    """Build a line from texts and (text, style) pairs; escape terminal control characters."""
    return Text.assemble(*(printable(one) if isinstance(one, str) else (printable(one[0]), one[1]) for one in parts))
