"""`bespeak semantic`: publish, register and use ontologies; each command is imported when it runs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

import click

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    # Name, and the module and attribute of its command.
    "publish": ("semantic_publish", "publish"),
}


class LazyCommands(click.Group):
    """Commands whose modules need the extra `semantic`, which not every command has to load."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command = getattr(importlib.import_module(f"bespeak.app.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyCommands)
def semantic() -> None:
    """Publish, register and inspect ontologies, so that services agree on meaning.

    Needs the extra: pip install 'bespeak[semantic]'.
    """
