"""The service argument of a command: its connection options and its client."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bespeak.agent.client.sender import read_token
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.web_options import WebOptions
from bespeak.app.server.connect import connect
from bespeak.errors import ConfigError
from bespeak.protocol.address import is_web
from bespeak.protocol.exchange.principal import derived_id
from bespeak.terminal import FILE, CommandFailedError, repeatable_option, seconds_option
from bespeak.terminal.console import json_option, print_findings
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.text_file import read_text

if TYPE_CHECKING:
    from bespeak.app.server.target import Target

Command = TypeVar("Command", bound=Callable[..., Any])

VARIABLE = "BESPEAK_TOKEN"
KEY_VARIABLE = "BESPEAK_KEY"
"""Environment variables of token and API key. Neither is an option, because process lists show command lines."""
SECRETS = (VARIABLE, KEY_VARIABLE)

_WEB = ("allow_private", "refresh", "trusted_hosts", "most_capabilities")  # options for services on the web
_LOCAL = ("report", "with_state", "store", "face", "opened", "describes")  # those for services that are loaded
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--agent-id", metavar="ID", help="Agent-ID of the caller: 64 hexadecimal digits."),
    click.option("--as", "as_name", metavar="NAME", help="Call with an Agent-ID derived from a name, for development."),
    repeatable_option("--scope", "scopes", metavar="DOMAIN:ACTION", text="Scope to declare"),
    click.option("--tls", is_flag=True, help="Use TLS for localhost too."),
    click.option("--ca-file", type=FILE, help="Trust these certificate authorities."),
    click.option("--signing-key", type=FILE, help="Public key (PEM or JWK) that must have signed the manifest."),
    click.option(
        "--token-file", type=FILE, help=f"File with the bearer token.  [default: the environment variable {VARIABLE}]"
    ),
    click.option(
        "--key-file", type=FILE, help=f"File with the API key.  [default: the environment variable {KEY_VARIABLE}]"
    ),
    click.option("--client-cert", type=FILE, help="Client certificate (PEM)."),
    click.option(
        "--client-key", type=FILE, help="Private key (PEM) of the client certificate, if it is in another file."
    ),
    click.option("--agent-key", type=FILE, help="Private key (PEM or JWK) of the agent, to sign requests."),
    click.option("--server-id", metavar="ID", help="Server id that signatures are for.  [default: the host name]"),
    click.option("--insecure", is_flag=True, help="Allow plain TCP or HTTP to other hosts."),
    click.option("--allow-private", is_flag=True, help="Allow web discovery in private networks."),
    click.option("--refresh", is_flag=True, help="Fetch web documents again instead of using the cache."),
    repeatable_option("--trust-host", "trusted_hosts", metavar="HOST", text="Also send the token to this host"),
    seconds_option("--timeout", 30.0, "Timeout for each request."),
)


def connection_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def service_options(command: Command) -> Command:
    return connection_options(json_option(command))


@contextmanager
def _quiet_client_log() -> Iterator[None]:
    """Silence the client's log: `discover` reports the signature state, and repeating it on every call is noise."""
    logger = logging.getLogger("bespeak.agent.client")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@asynccontextmanager
async def open_service(
    service: str | Target,
    *,
    agent_id: str | None = None,
    as_name: str | None = None,
    scopes: tuple[str, ...] = (),
    signing_key: Path | None = None,
    token_file: Path | None = None,
    key_file: Path | None = None,
    **options: Any,
) -> AsyncIterator[ServiceClient]:
    """Connect to a live service by its URI, or load one from a folder, a file or module:app.

    The other options are those of the command line, `most_capabilities` of WebOptions, and options of `connect_local`.
    """
    if as_name is not None:
        if agent_id is not None:
            raise click.UsageError("Give either --agent-id or --as.")
        agent_id = derived_id(as_name)
    with _quiet_client_log():
        trusted = read_text(signing_key) if signing_key else None
        if isinstance(trusted, Diagnostic):
            raise ConfigError(f"The signing key {signing_key}: {trusted.message}.")
        token, key = read_secrets(token_file, key_file)
        caller: dict[str, Any] = {"agent_id": agent_id, "scopes": declared_scopes(scopes), "token": token, "key": key}
        web = WebOptions(**{name: options.pop(name) for name in _WEB if name in options})
        local = {"report": print_findings, **{name: options.pop(name) for name in _LOCAL if name in options}}
        if isinstance(service, str) and is_address(service):
            async with connect(service, signing_key=trusted, web=web, **caller, **options) as client:
                if trusted is not None:
                    await _require_signature(client)
                yield client
        elif isinstance(service, str) and "://" in service:
            advice = "give agtp://HOST[:PORT], https://HOST, a folder or a file"
            raise ConfigError(f"{service!r} is not a supported URI: {advice}")
        elif trusted is not None:
            reason = f"{service!r} is loaded locally and has no signature"
            raise ConfigError(f"--signing-key requires a live service; {reason}")
        else:
            # The whole server, which a live service does not need here.
            from bespeak.app.server.local import connect_local  # noqa: PLC0415

            both = {name: options[name] for name in ("timeout", "agent_key")}
            async with connect_local(service, **caller, **both, **local) as client:
                yield client


def read_secrets(token_file: Path | None, key_file: Path | None) -> tuple[str | None, str | None]:
    """Return token and API key: of an option, else of the environment, where a key is used only without a token."""
    token = None if token_file is None else read_token(token_file)
    key = None if key_file is None else read_token(key_file)
    if token is None and key is None:
        token = os.environ.get(VARIABLE, "").strip() or None
        key = None if token is not None else os.environ.get(KEY_VARIABLE, "").strip() or None
    return token, key


def is_address(service: str) -> bool:
    """Return True if an argument is the address of a live service, not a target that is loaded."""
    return service.startswith("agtp://") or is_web(service)


def declared_scopes(scopes: tuple[str, ...]) -> list[str]:
    """Return the scopes of --scope, which may list several."""
    return [token for text in scopes for token in text.replace(",", " ").split()]


def check_text(*arguments: str) -> None:
    """Reject arguments that are not UTF-8: Python passes them as lone surrogates, which cannot be encoded."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise click.UsageError(f"{brief(argument)} is not UTF-8.") from error


async def _require_signature(client: ServiceClient) -> None:
    """Refuse a service whose manifest is not signed with the key of --signing-key."""
    await client.discover()
    verdict = client.signature
    if verdict is None or not verdict.trusted:
        reason = verdict.reason if verdict else "it has no manifest"
        raise CommandFailedError(f"{client.locator} was not called: {reason}.")
