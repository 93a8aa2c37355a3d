"""`bespeak keys api`: create, list and revoke the static API keys with which agents authenticate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from bespeak.agent.client.sender import derived_id
from bespeak.app.cli.agents import ask_store, change_store, check_scopes, find_agent, known_agents
from bespeak.contract.limits import read_duration
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import Scopes, is_canonical_id
from bespeak.state.identity.api_keys import make_key
from bespeak.state.store.commands.agents import AddApiKey, ApiKeyRow, ListApiKeys, RevokeApiKey
from bespeak.state.store.store import Conflict
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import json_option, line, print_json, print_list
from bespeak.terminal.deployment import server_document
from bespeak.terminal.target_store import store_options, write_secret

_STYLES: Final = {"active": "green", "expired": "yellow", "revoked": "red"}
_NEVER: Final = "never"
_LONGEST_NAME: Final = 128
_MOST_SCOPES: Final = 256
_LONGEST_LIFE: Final = 10 * 366 * 86400


@click.group()
def api() -> None:
    """Create, list and revoke API keys: static credentials of agents, for [auth] modes = ["key"].

    TARGET is the deployment, whose configuration names the store; --store overrides it. Running servers pick up changes
    within a second.
    """


@api.command(short_help="Create an API key and print it once.")
@store_options
@click.option("--agent", required=True, help="Whose key it is: the name or Agent-ID of an agent.")
@click.option(
    "--scope", "scopes", multiple=True, required=True, metavar="DOMAIN:ACTION", help="Scope to grant; repeatable."
)
@click.option(
    "--expires", default="90d", show_default=True, metavar="DURATION", help="Lifetime, like 12h, 90d, or never."
)
@click.option("--name", default="", help="What the key is for, to recognise it in the list.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the key to this file, for --key-file.")
@json_option
def new(
    *,
    target: str,
    override: str | None,
    agent: str,
    scopes: tuple[str, ...],
    expires: str,
    name: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Create an API key for an agent and print it. The store has only its digest, so it cannot be shown again.

    A key of a registered agent can use the scopes of its document that the key has, too. Where no agents are
    registered, any name is accepted: its Agent-ID is derived from it, as by `bespeak call --as NAME`.

    \b
    Examples:
    bespeak keys api new examples/hotel --agent desk --scope booking:room --name laptop
    bespeak keys api new rooms --agent ann --scope rooms:read --expires 12h
    """
    check_scopes(scopes)
    if len(scopes) > _MOST_SCOPES:
        raise click.UsageError(f"A key has at most {_MOST_SCOPES} scopes; got {len(scopes)}.")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise click.UsageError(f"--name must be at most {_LONGEST_NAME} printable characters.")
    lifetime = None if expires == _NEVER else read_duration(expires)
    if expires != _NEVER and (lifetime is None or lifetime > _LONGEST_LIFE):
        raise click.UsageError(f"--expires must be like 12h or 90d, up to 10 years, or never; got {expires!r}.")
    agent_id, label = _owner(target, override, agent, scopes)
    made = make_key()
    if output is not None:
        write_secret(output, f"{made.text}\n", force=None)
    command = AddApiKey(made.key_id, made.digest, agent_id, label, ", ".join(scopes), name, lifetime)
    try:
        done = change_store(target, override, command)
    except BaseException:
        if output is not None:
            output.unlink(missing_ok=True)
        raise
    if isinstance(done, Conflict):  # one in 2 ** 48
        raise CommandFailedError("the random id of the key was in use; run the command again")
    ends = None if lifetime is None else write_instant(time.time() + lifetime)
    key = str(output or made.text)
    if as_json:
        print_json({"key": key, "id": made.key_id, "agent_id": agent_id, "scopes": scopes, "expires": ends})
        return
    click.echo(f"key          {key}")
    click.echo(f"id           {made.key_id}")
    click.echo(f"Agent-ID     {agent_id}")
    click.echo(f"expires      {ends or _NEVER}")
    kept = "Keep the key now: it is" if output is None else "The file has the key, which is"
    click.echo(f"{kept} not shown again. Send it as `Authorization: Bearer KEY`,", err=True)
    click.echo("or set BESPEAK_KEY for `bespeak call`. Whoever has it can act as the agent.", err=True)
    if "key" not in server_document(target).auth.modes:
        click.echo('note: the server does not accept keys yet; write modes = ["key"] in [auth].', err=True)


@api.command("list", short_help="List the API keys of a deployment.")
@store_options
@json_option
def list_(target: str, override: str | None, as_json: bool) -> None:
    """List the API keys: id, state, agent, scopes, and when they were created, end and were last used.

    Keys that have ended are listed for 30 days. The time of the last use is exact to a minute.
    """
    rows: list[ApiKeyRow] = ask_store(target, override, ListApiKeys()) or []
    nothing = "there are no API keys; create one with `bespeak keys api new`"
    print_list(rows, _as_dict, _summary, nothing, as_json=as_json)


@api.command(short_help="Revoke an API key.")
@click.argument("key_id", metavar="ID")
@store_options
def revoke(key_id: str, target: str, override: str | None) -> None:
    """Revoke the API key with an ID, permanently. What was set going with it ends, too."""
    key_id = key_id.removeprefix("bsk_").partition("_")[0]  # somebody may paste the key itself
    done = change_store(target, override, RevokeApiKey(key_id))
    if isinstance(done, Conflict):
        raise CommandFailedError(f"there is no API key {key_id!r}; see `bespeak keys api list`")
    click.echo(f"{key_id} is revoked" + ("" if done else " already"))


def _owner(target: str, override: str | None, agent: str, scopes: tuple[str, ...]) -> tuple[str, str]:
    """Return the Agent-ID and the name of the agent for a key, and refuse a key that no server could accept."""
    required = server_document(target).agents.require_known
    every = known_agents(target, override)
    if (bool(every) if required is None else required) or any(agent in (one.name, one.agent_id) for one in every):
        one = find_agent(target, override, agent)
        if one.status != "active":
            raise CommandFailedError(f"{one.name} is {one.status}; a key for it would be refused")
        granted = one.agent.scopes if one.agent is not None else ()
        missing = Scopes(granted).missing(scopes)
        if missing:
            why = f"a key cannot widen that; its document grants {', '.join(granted) or 'nothing'}"
            raise CommandFailedError(f"{one.name} is not granted {', '.join(missing)}, and {why}")
        return one.agent_id, one.name
    if not 0 < len(agent) <= _LONGEST_NAME or not agent.isprintable():
        raise click.UsageError(f"--agent must be 1 to {_LONGEST_NAME} printable characters.")
    return agent if is_canonical_id(agent) else derived_id(agent), agent


def _summary(row: ApiKeyRow) -> Text:
    shown = _as_dict(row)
    state = shown["state"]
    ends, used = shown["expires"] or _NEVER, shown["last_used"] or _NEVER
    times = f"created {shown['created']}  expires {ends}  last used {used}"
    label = f"  {row.name}" if row.name else ""
    return line(f"{row.key_id}  ", (f"{state:<8}", _STYLES[state]), f" {row.agent}  {row.scopes}  {times}{label}")


def _as_dict(row: ApiKeyRow) -> dict[str, Any]:
    moments = {name: getattr(row, name) for name in ("created", "expires", "revoked", "last_used")}
    return {
        "id": row.key_id,
        "state": row.state(time.time()),
        "agent_id": row.agent_id,
        "agent": row.agent,
        "name": row.name,
        "scopes": row.scopes.split(", "),
        **{name: None if at is None else write_instant(at) for name, at in moments.items()},
    }
