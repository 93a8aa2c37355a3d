"""What commands of the command line share: exit codes, output, the store of a deployment, decisions of an operator."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from bespeak.contract.extensions import Lazy
from bespeak.errors import BespeakError

if TYPE_CHECKING:
    from bespeak.contract.service import Service

PATH: Final = click.Path(path_type=Path)
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
EXIT_GOOD: Final = 0
EXIT_REFUSED: Final = 1  # findings, or a refusal
EXIT_UNUSABLE: Final = 2  # usage, configuration or internal error


Option = Callable[[Callable[..., Any]], Callable[..., Any]]  # declares an option of a command


def seconds_option(name: str, default: float, text: str, *, more_than_zero: bool = True) -> Option:
    kind = click.FloatRange(min=0, min_open=more_than_zero)
    return click.option(name, type=kind, default=default, show_default=True, metavar="SECONDS", help=text)


def repeatable_option(*names: str, metavar: str, text: str, **settings: Any) -> Option:
    return click.option(*names, multiple=True, metavar=metavar, help=f"{text}; repeatable.", **settings)


class CommandFailedError(BespeakError):
    """A command failed; the exit code is 1."""


class TargetLoader(NamedTuple):
    """What the command line gives to every command, as the object of its context."""

    service: Callable[[str], Service]  # loads the service of a target, which imports the code of the operator


class LazyGroup(click.Group):
    """Commands of which some are imported only when they are listed or run."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, Lazy] | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        # Commands that are all lazy keep the order of their table.
        return sorted({*self.commands, *self.lazy}) if self.commands else list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command = self.lazy[cmd_name].load()
        assert isinstance(command, click.Command)
        return command


def screen_width(*, stderr: bool = False) -> int | None:
    """Return the width of the terminal; None in a pipe, where lines are not wrapped, even if they are coloured."""
    stream = sys.stderr if stderr else sys.stdout
    return shutil.get_terminal_size().columns if stream.isatty() else None
