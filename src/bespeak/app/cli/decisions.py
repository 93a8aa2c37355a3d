"""Decisions of an operator about records in a store: who decides, why, and where."""

from __future__ import annotations

import asyncio
import getpass
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import click
import msgspec

from bespeak.app.cli.target_store import existing_place, use_store
from bespeak.app.server.assembly import RunningTrail
from bespeak.app.server.serving import signing_keys
from bespeak.app.server.state import server_document, store_place
from bespeak.app.server.target import load_target
from bespeak.errors import BespeakError
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.state.audit.record import make_payload
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.store import Command, Store

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


def carry_out(
    target: str, override: str | None, command: Command, *, verb: str, path: str, details: Mapping[str, Any]
) -> Any:
    """Carry out a decision in the store, with its record if the deployment has an audit trail.

    The record names the decision like a call, by verb and path, with the details that are not None.
    """
    document = server_document(target)
    if document.audit.recording(lasting=True) == "off":  # a store that a command can open outlives its process
        return visit_store(target, override, lambda store: store.do(command))
    server_id = document.main.server_id or _declared_id(target)
    if not server_id:
        click.echo("the audit trail has no record of this: the deployment does not name its server_id", err=True)
        return visit_store(target, override, lambda store: store.do(command))
    keys = signing_keys(document.signing_key)
    request = Request(verb, path, "", {}, msgspec.json.encode(details), Connection(face="cli"))
    payload = make_payload(
        request=request,
        response=Response(status.OK),
        principal=ANONYMOUS,
        method=request.method,
        path=request.path,
        server_id=server_id,
        issued_at=time.time(),
        recorded={name: value for name, value in details.items() if value is not None},
    )

    async def record(store: Store) -> Any:
        trail = RunningTrail(document.audit, server_id, store, keys)
        await trail.start()
        try:
            return await store.do(command, AppendAudit("", payload))
        finally:
            await trail.stop()

    return visit_store(target, override, record)


def _declared_id(target: str) -> str:
    """Return the server_id that the application or document of a target names; empty if it cannot be loaded."""
    try:
        return load_target(target).service.identity.server_id
    except BespeakError:
        return ""


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user id has no name
        raise click.UsageError("your login name is unknown; give one with --by NAME") from None
