"""`bespeak semantic`: publish, register and use ontologies; each command is imported when it runs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import click

from bespeak.errors import ConfigError

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    # Name, and the module and attribute of its command.
    "publish": ("semantic_documents", "publish"),
    "register": ("semantic_register", "register"),
    "sign": ("semantic_register", "sign"),
    "confirm": ("semantic_register", "confirm"),
    "list": ("semantic_list", "list_"),
    "show": ("semantic_list", "show"),
    "align": ("semantic_align", "align_"),
    "explain": ("semantic_align", "explain"),
    "negotiate": ("semantic_negotiate", "negotiate"),
    "validate": ("semantic_documents", "validate"),
}

_PACKAGES: Final = frozenset({"pyld", "pyoxigraph", "rapidfuzz"})  # packages of the extra


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

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if error.name not in _PACKAGES:
                raise
            raise ConfigError(f"{error.name} is not installed: pip install 'bespeak[semantic]'") from error


@click.group(cls=LazyCommands)
def semantic() -> None:
    """Publish, register and inspect ontologies, so that services agree on meaning.

    Needs the extra: pip install 'bespeak[semantic]'.
    """
