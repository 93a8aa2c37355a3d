"""Decisions of an operator about what waits in a store: who decides, why, and where."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from bespeak.app.cli.target_store import existing_place, use_store
from bespeak.app.server.state import store_place
from bespeak.state.store.store import Store

Result = TypeVar("Result")


def decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --by and --reason."""
    command = click.option("--by", metavar="NAME", help="Name of the decider.  [default: your login name]")(command)
    return click.option("--reason", metavar="TEXT", help="Reason; shown to the requesting agent.")(command)


def check_decision(subject: str, reason: str | None, by: str | None) -> str:
    """Return the name of the decider; refuse texts that cannot be shown."""
    name = _login() if by is None else by
    for what, text in (("--by", name), ("--reason", reason), ("The id", subject)):
        if text is not None and not (text.strip() and text.isprintable()):
            raise click.UsageError(f"{what} must be printable text; got {text!r}")
    return name


def visit_store(target: str, override: str | None, use: Callable[[Store], Awaitable[Result]]) -> Result:
    """Use the store of a deployment. A server may be running on it."""
    return asyncio.run(use_store(existing_place(store_place(target, override)), use))


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user id has no name
        raise click.UsageError("your login name is unknown; give one with --by NAME") from None
