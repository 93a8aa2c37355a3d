"""`bespeak extension`: run a command that an extension of the author adds."""

from __future__ import annotations

from typing import Any

import click

from bespeak.app.server.target import load_target
from bespeak.terminal import CommandFailedError


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("target")
@click.argument("arguments", metavar="[COMMAND [ARGS]...]", nargs=-1, type=click.UNPROCESSED)
def extension(target: str, arguments: tuple[str, ...]) -> Any:
    """Run a COMMAND of an extension of TARGET; without one, list them.

    \b
    Example:
    bespeak extension reminders.py list
    """
    commands = {one.name: one for extension in load_target(target).service.extensions for one in extension.commands}
    if not commands:
        raise CommandFailedError(f"no extension of {target} has commands; see `App(extensions=[...])`")
    group = click.Group("extension", commands=commands, help=f"Commands of the extensions of {target}.")
    shown = list(arguments) or ["--help"]
    return group.main(shown, prog_name=f"bespeak extension {target}", standalone_mode=False, obj=target)
