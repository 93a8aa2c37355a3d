"""Decisions of an operator about records in a store: who decides, why, and where."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import click

from bespeak.errors import BespeakError
from bespeak.runtime.exchange import RunningTrail
from bespeak.runtime.identity.signer import signing_keys
from bespeak.state.store.store import Command, Store
from bespeak.terminal import TargetLoader
from bespeak.terminal.deployment import server_document
from bespeak.terminal.panels import write_decision
from bespeak.terminal.target_store import visit_store


def decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--by", metavar="NAME", help="Name of the decider.  [default: your login name]")(command)
    return click.option("--reason", metavar="TEXT", help="Reason; shown to the requesting agent.")(command)


def check_decision(subject: str, reason: str | None, by: str | None) -> str:
    """Return the name of the decider; refuse texts that cannot be shown."""
    try:
        name = getpass.getuser() if by is None else by
    except (KeyError, OSError):  # the user id has no name
        raise click.UsageError("your login name is unknown; give one with --by NAME") from None
    for what, text in (("--by", name), ("--reason", reason), ("The id", subject)):
        if text is not None and not (text.strip() and text.isprintable()):
            raise click.UsageError(f"{what} must be printable text; got {text!r}")
    return name


def carry_out(
    target: str, override: str | None, command: Command, *, verb: str, path: str, details: Mapping[str, Any]
) -> Any:
    """Carry out a decision in the store, with its record if the deployment has an audit trail.

    The record names the decision like a call, by verb and path, with the details that are not None.
    """
    document = server_document(target)
    is_off = document.audit.recording(lasting=True) == "off"  # a store that a command can open outlives its process
    server_id = "" if is_off else document.main.server_id
    if not (is_off or server_id):
        load = click.get_current_context().find_object(TargetLoader)
        with suppress(BespeakError):  # the application or document of the target cannot be loaded
            server_id = "" if load is None else load.service(target).identity.server_id
    if not server_id:
        if not is_off:
            click.echo("the audit trail has no record of this: the deployment does not name its server_id", err=True)
        return visit_store(target, override, lambda store: store.do(command))
    keys = signing_keys(document.signing_key)
    entry = write_decision(server_id, verb, path, details)

    async def record(store: Store) -> Any:
        trail = RunningTrail(document.audit, server_id, store, keys)
        await trail.start()
        try:
            return await store.do(command, entry)
        finally:
            await trail.stop()

    return visit_store(target, override, record)
