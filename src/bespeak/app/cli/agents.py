"""`bespeak agents` and `bespeak keys api`: register, list, suspend and revoke agents, and their static API keys."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.contract.agent import UNREADABLE, Agent
from bespeak.contract.limits import read_duration
from bespeak.documents.deployment.deployment import Deployment, read_deployment
from bespeak.documents.deployment.folder import is_folder
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import Scopes, derived_id, is_canonical_id, is_scope_token
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.agent_json import parse_agent
from bespeak.state.identity.credentials import make_key
from bespeak.state.store.commands.agents import (
    RETIRED,
    AddApiKey,
    AgentRow,
    ApiKeyRow,
    ListAgents,
    ListApiKeys,
    PutAgent,
    ReadLifecycle,
    RevokeApiKey,
    SetAgentStatus,
)
from bespeak.state.store.store import Command, Conflict
from bespeak.terminal import PATH, CommandFailedError, repeatable_option
from bespeak.terminal.console import json_option, line, members, print_findings, print_json, print_list, print_result
from bespeak.terminal.deployment import configuration_of, server_document, store_place
from bespeak.terminal.target_store import (
    existing_place,
    is_there,
    lasting_place,
    store_option,
    store_options,
    usable,
    use_store,
    write_secret,
)
from bespeak.text.reading.text_file import read_text

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

_ACTOR: Final = "operator"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SHORTEST_PREFIX: Final = 8
_STYLES: Final = {"active": "green", "suspended": "yellow"}


@click.group()
def agents() -> None:
    """Register, list, suspend and revoke the agents of a deployment.

    TARGET is the deployment, whose configuration names the store; --store overrides it. AGENT is a name, an Agent-ID,
    or at least the first eight digits of one. Running servers pick up changes within seconds.
    """


@agents.command(short_help="Register an agent.")
@click.argument("words", nargs=-1, metavar="[DOCUMENT] [TARGET]")
@store_option
@click.option("--name", help="Create an agent with this name: letters, digits, - and _.")
@click.option("--description", default="", help="Description of the new agent.")
@repeatable_option("--scope", "scopes", metavar="DOMAIN:ACTION", text="Scope to grant")
@click.option("--key", type=PATH, help="Its Ed25519 key (PEM or JWK), private or public.")
@click.option("--new-key", type=PATH, help="Generate a key and write the private key here.")
@click.option("--issuer-key", type=PATH, help="Sign with this key instead of the server's.")
def add(
    *, words: tuple[str, ...], override: str | None, name: str | None, new_key: Path | None, **described: Any
) -> None:
    """Register the agent of an identity DOCUMENT, or create one with --name, and print its Agent-ID.

    An agent that is already registered keeps its status and gets the new document. A revoked agent stays revoked.

    \b
    Examples:
    bespeak agents add concierge.json examples/hotel
    bespeak agents add --name desk examples/hotel --scope booking:room --new-key desk.pem
    """
    given = list(words)
    document = Path(given.pop(0)) if name is None and given else None
    if (document is None) == (name is None) or len(given) > 1:
        raise click.UsageError("Give either an identity DOCUMENT or --name, and at most one TARGET.")
    target = given[0] if given else "."
    if document is not None:
        text = usable(read_text(document), document)
        agent = _read(text, str(document))
        _put(target, override, agent, text)
    else:
        agent = _make(target, override, name=name or "", new_key=new_key, **described)
    click.echo(f"Agent-ID     {agent.agent_id}")
    click.echo(f"name         {agent.name}")
    if new_key is not None:
        click.echo(f"private key  {new_key}")


def _make(
    target: str,
    override: str | None,
    *,
    name: str,
    description: str,
    scopes: tuple[str, ...],
    key: Path | None,
    new_key: Path | None,
    issuer_key: Path | None,
) -> Agent:
    from bespeak.state.identity.jws import generate_key, private_text, public_jwk  # noqa: PLC0415 - slow to load

    if not _NAME.fullmatch(name):
        raise click.UsageError("--name must be 1 to 128 letters, digits, '-' or '_'.")
    check_scopes(scopes)
    if key is not None and new_key is not None:
        raise click.UsageError("Give either --key or --new-key.")
    issuer = issuer_of(target, issuer_key)
    own = generate_key() if new_key is not None else read_key(key) if key is not None else None
    public_key, issued_at = public_jwk(own) if own is not None else None, write_instant(time.time())
    made = enrol(issuer, public_key, name=name, description=description, scopes=scopes, issued_at=issued_at)
    if isinstance(made, Refused):
        raise CommandFailedError(made.message)
    text = msgspec.json.encode(made).decode()
    agent = _read(text, name)
    if new_key is not None and own is not None:
        # Before the agent is registered: without its key it could never authenticate.
        write_secret(new_key, private_text(own), force=None)
    try:
        _put(target, override, agent, text)
    except BaseException:
        if new_key is not None:
            new_key.unlink(missing_ok=True)
        raise
    return agent


def check_scopes(scopes: Sequence[str]) -> None:
    wrong = next((scope for scope in scopes if not is_scope_token(scope)), None)
    if wrong is not None:
        raise click.UsageError(f"--scope {wrong!r} is not a valid scope; write domain:action in lower case.")


def _read(text: str, file: str) -> Agent:
    agent, findings = parse_agent(text, file)
    print_findings(findings)
    if agent is None or agent.status == UNREADABLE:
        raise CommandFailedError(f"{file} is not a valid identity document; nothing was changed")
    return agent


def _put(target: str, override: str | None, agent: Agent, text: str) -> None:
    if any(one.agent_id == agent.agent_id and one.status == RETIRED for one in filed_agents(target)):
        done: Any = Conflict("agent-retired")
    else:
        done = change_store(target, override, PutAgent(agent.agent_id, agent.name, agent.status, text, _ACTOR))
    if not isinstance(done, Conflict):
        return
    if done.reason == "agent-retired":
        raise CommandFailedError(f"agent {agent.agent_id} is revoked, and a revoked Agent-ID cannot be reused")
    later = "the name of a revoked agent can be reused after 90 days"
    raise CommandFailedError(f"the name {agent.name!r} belongs to agent {done.details['agent_id']}; {later}")


@agents.command("list", short_help="List the agents of a deployment.")
@store_options
@json_option
def list_(target: str, override: str | None, as_json: bool) -> None:
    """List the agents of a deployment, from its store and its files."""
    nothing = "no agents are registered; add one with `bespeak agents add`"
    print_list(known_agents(target, override), _as_dict, _summary, nothing, as_json=as_json)


@agents.command(short_help="Show an agent and its lifecycle.")
@click.argument("agent")
@store_options
@json_option
@click.option("--id", "only_id", is_flag=True, help="Print only the Agent-ID.")
def show(agent: str, target: str, override: str | None, as_json: bool, only_id: bool) -> None:
    """Show the status, scopes and lifecycle of an agent."""
    one = find_agent(target, override, agent)
    if only_id:
        click.echo(one.agent_id)
        return
    events = ask_store(target, override, ReadLifecycle(one.agent_id)) or []
    history = [{**msgspec.to_builtins(event), "at": write_instant(event.at)} for event in events]
    data = {**_as_dict(one), "document": one.document, "lifecycle": history}
    print_result(data, _lines(one, events), as_json=as_json)


def _lifecycle(name: str, event: str, text: str, *, required: bool = False, short_help: str | None = None) -> None:
    @agents.command(name, help=text, short_help=short_help)
    @click.argument("agent")
    @store_options
    @click.option("--reason", required=required, help="Reason to record with the change.")
    def apply(agent: str, target: str, override: str | None, reason: str | None) -> None:
        from bespeak.runtime.methods.lifecycle import CHANGES  # noqa: PLC0415 - loads the server's side

        change = next(change for change in CHANGES if change.method.name == event)
        one = find_agent(target, override, agent)
        command = SetAgentStatus(
            agent_id=one.agent_id,
            event=event,
            allowed_from=change.allowed_from,
            status=change.status,
            actor=_ACTOR,
            reason=reason or "",
            name=one.name,
            assumed=one.status,
        )
        done = change_store(target, override, command)
        if isinstance(done, Conflict):
            state = done.details.get("status", "unknown")
            raise CommandFailedError(f"{one.name} is {state}; {event} is not allowed in this state")
        click.echo(f"{one.name} is {done.status}" + (" already" if done.noop else f", and was {done.previous}"))


_SUSPEND: Final = "Suspend an agent: its requests are refused until it is reinstated."
_lifecycle("suspend", "DEACTIVATE", _SUSPEND, short_help="Suspend an agent until it is reinstated.")
_lifecycle("reinstate", "REINSTATE", "Reinstate a suspended agent.")
_lifecycle("revoke", "REVOKE", "Revoke an agent permanently. Its Agent-ID cannot be reused.", required=True)


class _AgentEntry(msgspec.Struct, frozen=True):
    agent_id: str
    name: str
    status: str
    place: str  # `store` or `file`
    filed: Agent | None = None
    kept: str | None = None  # the stored document, which takes precedence over the file

    @property
    def document(self) -> Any:
        """The identity document; None if only a status is stored."""
        if self.kept is not None:
            return msgspec.json.decode(self.kept)
        return dict(self.filed.document) if self.filed is not None else None

    @property
    def agent(self) -> Agent | None:
        """The parsed document. Parse it only for agents that are shown: verifying thousands takes seconds."""
        return parse_agent(self.kept, self.agent_id)[0] if self.kept is not None else self.filed


def known_agents(target: str, override: str | None) -> list[_AgentEntry]:
    """List all agents by name. The store takes precedence over files."""
    filed = {agent.agent_id: agent for agent in filed_agents(target)}
    rows: list[AgentRow] = ask_store(target, override, ListAgents()) or []
    found = {key: _AgentEntry(key, agent.name, agent.status, "file", agent) for key, agent in filed.items()}
    for row in rows:
        known = filed.get(row.agent_id) if row.document is None else None
        place = "file" if known is not None else "store"
        found[row.agent_id] = _AgentEntry(row.agent_id, row.name, row.status, place, known, row.document)
    return sorted(found.values(), key=lambda one: (one.name, one.agent_id))


def find_agent(target: str, override: str | None, wanted: str) -> _AgentEntry:
    every = known_agents(target, override)
    found = [one for one in every if wanted in (one.name, one.agent_id)]
    if not found and len(wanted) >= _SHORTEST_PREFIX:
        found = [one for one in every if one.agent_id.startswith(wanted)]
    if len(found) > 1:
        # Retired agents may have had the same name.
        found = [one for one in found if one.status != "retired"] or found
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandFailedError(f"agent {wanted!r} is not registered; see `bespeak agents list`")
    several = ", ".join(one.agent_id[:16] for one in found[:5])
    raise CommandFailedError(f"{wanted!r} is ambiguous: {several}; give the full Agent-ID")


def _summary(one: _AgentEntry) -> Text:
    style = _STYLES.get(one.status, "red")
    return line(f"{one.name:<24} ", (f"{one.status:<11} ", style), f"{one.place:<6} ", one.agent_id)


def _as_dict(one: _AgentEntry) -> dict[str, Any]:
    agent = one.agent
    scopes = list(agent.scopes) if agent is not None else []
    return {**members(one, "agent_id", "name", "status", "place"), "scopes": scopes}


def _lines(one: _AgentEntry, events: Any) -> Iterator[Text]:
    agent = one.agent
    yield line((one.name, "bold"))
    yield line(f"  Agent-ID   {one.agent_id}")
    yield line("  status     ", (one.status, _STYLES.get(one.status, "red")))
    if agent is not None:
        yield line(f"  scopes     {', '.join(agent.scopes) or 'none'}")
        yield line(f"  tier       {agent.trust_tier or 'not given'}")
        yield line(f"  acts for   {agent.principal or agent.principal_id or 'not given'}")
        yield line(f"  key        {agent.public_key['kid'] if agent.public_key else 'none: it cannot sign requests'}")
    for event in events:
        why = f": {event.reason}" if event.reason else ""
        yield line(f"  {write_instant(event.at)}  {event.event} by {event.actor}{why}")


def ask_store(target: str, override: str | None, command: Command) -> Any:
    """Read from the store; return None if it does not exist yet."""
    place = lasting_place(store_place(target, override))
    if override:
        existing_place(place)
    return asyncio.run(use_store(place, lambda store: store.read(command))) if is_there(place) else None


def change_store(target: str, override: str | None, command: Command) -> Any:
    done = asyncio.run(use_store(lasting_place(store_place(target, override)), lambda store: store.do(command)))
    return done if isinstance(done, Conflict) else done[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    server_id: str
    operator: str
    key: OKPKey


def filed_agents(target: str) -> tuple[Agent, ...]:
    """Return the agents described by files of a deployment, without importing code of the operator."""
    return _deployment(target).agents


def issuer_of(target: str, key_file: Path | None) -> Issuer:
    """Return the issuer of identities of a deployment: its operator, with the server's signing key or another one."""
    server = _deployment(target).server
    path = key_file or server.signing_key
    if path is None:
        advice = "give --issuer-key FILE, or set signing_key in bespeak.toml. `bespeak keys new --out FILE` makes one."
        raise ConfigError(f"an agent's identity must be signed, and there is no key: {advice}")
    key = read_key(path)
    if not key.is_private:
        raise ConfigError(f"{path} contains a public key; signing requires the private key")
    identity, nobody = server.identity, "unspecified"
    if identity is None:
        return Issuer(server_id=nobody, operator=nobody, key=key)
    return Issuer(server_id=identity.server_id, operator=identity.operator or nobody, key=key)


def read_key(path: Path) -> OKPKey:
    from bespeak.state.identity import key_files  # noqa: PLC0415 - slow to load

    return usable(key_files.read_key(path), path)


def enrol(
    issuer: Issuer, public_key: Mapping[str, str] | None, *, description: str, scopes: Sequence[str], **members: str
) -> dict[str, Any] | Refused:
    """Create the identity document of a new agent, including its Genesis; `members` are `name` and `issued_at`."""
    from bespeak.state.identity.genesis import issue_genesis  # noqa: PLC0415 - loads cryptography
    from bespeak.state.identity.jws import PrivateKey  # noqa: PLC0415

    key = issuer.key.private_key
    assert isinstance(key, PrivateKey)
    about = {**members, "owner": issuer.operator, "issuer": issuer.server_id}
    genesis = issue_genesis(key, scopes=scopes, public_key=public_key, **about)
    if isinstance(genesis, Refused):
        return genesis
    return {
        "agent_id": genesis.agent_id,
        **members,
        "description": description,
        "principal": issuer.operator,
        "principal_id": genesis.principal_id,
        "owner_id": genesis.owner_id,
        "issuer": f"agtp://{issuer.server_id}",
        "updated_at": members["issued_at"],
        "scopes_accepted": sorted(set(scopes)),
        "trust_tier": genesis.trust_tier,
        "verification_path": genesis.verification_path,
        "genesis": dict(genesis.document),
    }


def _deployment(target: str) -> Deployment:
    try:
        root, configuration = configuration_of(target)
    except ConfigError:  # --store names the store of a target that is elsewhere
        return Deployment(root=Path(target).parent)
    if configuration is None:
        return read_deployment(root)[0] if is_folder(Path(target)) else Deployment(root=root)
    return read_deployment(configuration, beside_app=Path(target) not in (root, configuration))[0]


_KEY_STYLES: Final = {"active": "green", "expired": "yellow", "revoked": "red"}
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
@repeatable_option("--scope", "scopes", metavar="DOMAIN:ACTION", text="Scope to grant", required=True)
@click.option(
    "--expires", default="90d", show_default=True, metavar="DURATION", help="Lifetime, like 12h, 90d, or never."
)
@click.option("--name", default="", help="What the key is for, to recognise it in the list.")
@click.option("-o", "--output", type=PATH, help="Write the key to this file, for --key-file.")
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
def list_keys(target: str, override: str | None, as_json: bool) -> None:
    """List the API keys: id, state, agent, scopes, and when they were created, end and were last used.

    Keys that have ended are listed for 30 days. The time of the last use is exact to a minute.
    """
    rows: list[ApiKeyRow] = ask_store(target, override, ListApiKeys()) or []
    nothing = "there are no API keys; create one with `bespeak keys api new`"
    print_list(rows, _key_dict, _key_summary, nothing, as_json=as_json)


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


def _key_summary(row: ApiKeyRow) -> Text:
    shown = _key_dict(row)
    state = shown["state"]
    ends, used = shown["expires"] or _NEVER, shown["last_used"] or _NEVER
    times = f"created {shown['created']}  expires {ends}  last used {used}"
    label = f"  {row.name}" if row.name else ""
    return line(f"{row.key_id}  ", (f"{state:<8}", _KEY_STYLES[state]), f" {row.agent}  {row.scopes}  {times}{label}")


def _key_dict(row: ApiKeyRow) -> dict[str, Any]:
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
