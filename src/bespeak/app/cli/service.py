"""The service a command talks to: its options, and the way from what was typed to an open client."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from bespeak.agent.client.bearer_token import read_token
from bespeak.agent.client.connect import connect
from bespeak.agent.client.locator import is_web
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.web_options import WebOptions
from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.server.local import connect_local
from bespeak.documents.ai.document import MOST_CAPABILITIES
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

Command = TypeVar("Command", bound=Callable[..., Any])

VARIABLE = "BESPEAK_TOKEN"
"""The token itself is no option: whoever lists the processes of a machine could read it."""

_OPTIONS = (
    click.option("--agent-id", metavar="ID", help="Who asks: an agent, by its 64 hexadecimal digits."),
    click.option("--scope", "scopes", multiple=True, metavar="DOMAIN:ACTION", help="Authority to declare; repeatable."),
    click.option("--tls", is_flag=True, help="TLS also to this machine."),
    click.option(
        "--ca-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Trust these certificate authorities.",
    ),
    click.option(
        "--signing-key",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Public key (PEM or JWK) the manifest should be signed with.",
    ),
    click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"File with the bearer token that proves who asks; without it the variable {VARIABLE}.",
    ),
    click.option(
        "--client-cert",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Certificate (PEM) that proves who asks.",
    ),
    click.option(
        "--client-key",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Private key (PEM) of that certificate, if it is not in the same file.",
    ),
    click.option(
        "--agent-key",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Private key (PEM or JWK) of the agent, to sign requests with.",
    ),
    click.option("--server-id", metavar="ID", help="The server that signatures are for, if not named like its host."),
    click.option("--insecure", is_flag=True, help="Plain TCP or http also to a host that is not this machine."),
    click.option("--allow-private", is_flag=True, help="Follow documents of the web into private networks, too."),
    click.option("--refresh", is_flag=True, help="Ask for documents of the web again that are kept."),
    click.option(
        "--trust-host",
        "trusted_hosts",
        multiple=True,
        metavar="HOST",
        help="Send the token also to this host if something is offered there; repeatable.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="How long a request may take.",
    ),
)


def connection_options(command: Command) -> Command:
    """The options of every command that talks to a service."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def service_options(command: Command) -> Command:
    """The options of a command that shows what a service says."""
    return connection_options(click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command))


@contextmanager
def _without_advice() -> Iterator[None]:
    """`discover` says what a signature is worth; a log line about it on every call would only be in the way."""
    logger = logging.getLogger("bespeak.agent.client")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@asynccontextmanager
async def open_service(
    service: str,
    *,
    agent_id: str | None,
    scopes: tuple[str, ...],
    tls: bool,
    ca_file: Path | None,
    insecure: bool,
    signing_key: Path | None,
    token_file: Path | None = None,
    client_cert: Path | None = None,
    client_key: Path | None = None,
    agent_key: Path | None = None,
    server_id: str | None = None,
    allow_private: bool = False,
    refresh: bool = False,
    trusted_hosts: tuple[str, ...] = (),
    most_capabilities: int | None = MOST_CAPABILITIES,
    timeout: float,  # noqa: ASYNC109 - the deadline of each call
    report: Callable[[list[Diagnostic]], None] = print_findings,
) -> AsyncIterator[ServiceClient]:
    """A live service by its URI, or one that is put together here from a folder, a file or module:app."""
    with _without_advice():
        trusted = _read_key(signing_key) if signing_key else None
        token = read_token(token_file) if token_file else os.environ.get(VARIABLE, "").strip() or None
        tokens = [token for text in scopes for token in text.replace(",", " ").split()]
        if service.startswith("agtp://") or is_web(service):
            async with connect(
                service,
                agent_id=agent_id,
                scopes=tokens,
                tls=tls,
                ca_file=ca_file,
                insecure=insecure,
                signing_key=trusted,
                token=token,
                client_cert=client_cert,
                client_key=client_key,
                agent_key=agent_key,
                server_id=server_id,
                timeout=timeout,
                web=WebOptions(
                    allow_private=allow_private,
                    refresh=refresh,
                    most_capabilities=most_capabilities,
                    trusted_hosts=trusted_hosts,
                ),
            ) as client:
                if trusted is not None:
                    await _insist_on_signature(client)
                yield client
        elif "://" in service:
            raise ConfigError(
                f"{service!r} is no service that can be reached: "
                "give agtp://HOST[:PORT], https://HOST, a folder or a file"
            )
        elif trusted is not None:
            raise ConfigError(f"--signing-key is for a live service; {service!r} is read here, and nobody signs it")
        else:
            yield connect_local(
                service,
                report=report,
                agent_id=agent_id,
                scopes=tokens,
                timeout=timeout,
                agent_key=agent_key,
                token=token,
            )


def _read_key(path: Path) -> str:
    text = read_text(path)
    if isinstance(text, Diagnostic):
        raise ConfigError(f"The signing key {path}: {text.message}.")
    return text


async def _insist_on_signature(client: ServiceClient) -> None:
    """Whoever names the key wants nothing from a service that does not sign with it."""
    await client.discover()
    verdict = client.signature
    if verdict is None or not verdict.trusted:
        reason = verdict.reason if verdict else "there is no manifest"
        raise CommandFailedError(f"{client.locator} is not called: {reason}.")
