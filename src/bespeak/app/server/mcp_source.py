"""MCP servers as sources: a command line or a URL is reached once to list its tools, to import or to call them."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bespeak.agent.client.service import ServiceClient
from bespeak.app.server.http_face import sdk_needed
from bespeak.app.server.local import connect_local
from bespeak.app.server.target import Target
from bespeak.checks.lint.rules.handler import secrets
from bespeak.contract.handler import VARIABLE, McpServer, is_usable_address
from bespeak.documents.adoption.facade import LeftOut
from bespeak.documents.mcp.facade import import_tools
from bespeak.documents.mcp.tools import ToolList
from bespeak.errors import ConfigError
from bespeak.protocol.address import Locator
from bespeak.runtime.bindings.mcp.process import Launch, McpFailure, resolve_server
from bespeak.terminal import CommandFailedError
from bespeak.text.diagnostics.diagnostic import brief, printable

_UNNAMED: Final = "MCP server"


def named_server(
    words: Sequence[str], env: Sequence[str] = (), headers: Sequence[str] = (), token_file: str | None = None
) -> McpServer:
    """Return the server that a command line names. Raises ConfigError if files could not hold it."""
    if len(words) == 1 and "://" in words[0]:
        if env:
            raise ConfigError("--env is for a command. Send a credential to a URL with --header or --token-file.")
        token = "" if token_file is None else str(Path(token_file).absolute())
        server = McpServer(tool="", url=words[0], headers=_headers(headers), token_file=token)
        if not is_usable_address(VARIABLE.sub("x", server.url)):
            advice = "Give an https:// URL without a user, or http:// on this machine."
            raise ConfigError(f"{brief(server.url)} cannot be used. {advice}")
    else:
        if headers or token_file:
            raise ConfigError("--header and --token-file are for a URL. Pass variables to a command with --env.")
        command, *arguments = shlex.split(words[0]) if len(words) == 1 else words
        local = any(Path(word).exists() and not Path(word).is_absolute() for word in (command, *arguments))
        folder = str(Path.cwd()) if local else ""
        server = McpServer(tool="", command=command, args=tuple(arguments), env=tuple(env), folder=folder)
    written = next(secrets(server), None)
    if written is not None:
        advice = "Write it as '${NAME}' in single quotes, and set the variable NAME."
        raise ConfigError(f"The value of {written[1]} would be written to files. {advice}")
    return server


async def read_tools(server: McpServer, source: str, seconds: float = 60.0) -> tuple[ToolList, list[LeftOut]]:
    """Start or reach a server, list its tools within some seconds and end it; return notes on what was skipped."""
    from bespeak.runtime.bindings.mcp.connection import McpConnection  # noqa: PLC0415 - slow to load

    launch = resolve_server(server, os.environ)
    if not isinstance(launch, Launch):
        raise ConfigError(f"{printable(launch[0][1])}. Set it and run the command again.")
    if launch.fault:
        raise ConfigError(f"{printable(launch.fault)}.")
    connection = McpConnection(launch, start_seconds=seconds)
    try:
        failure = await connection.open() or await connection.read_offers()
        if failure is not None:
            raise CommandFailedError(f"{brief(source)}: {_reason(failure)}")
        listed = ToolList(
            tools=tuple(connection.tools.values()),
            title=connection.title or launch.name or _UNNAMED,
            version=connection.version,
            instructions=connection.instructions,
            source=source,
            offers=tuple(connection.offers),
        )
        why = "the server lists it more than once; only the first can be called"
        return listed, [LeftOut(name, why) for name in connection.repeated]
    finally:
        await asyncio.shield(connection.close())


@asynccontextmanager
async def connect_tools(url: str, *, timeout: float = 30.0, **options: Any) -> AsyncIterator[ServiceClient]:  # noqa: ASYNC109
    """Open a client for the tools of an MCP server, by the facade that `bespeak import mcp` would write for it."""
    server = named_server([url])
    with sdk_needed():
        listed, notes = await read_tools(server, url, timeout)
    service = import_tools(listed, server, notes).service
    # The scopes that an import guesses tell callers of a server apart; here there is one.
    own = tuple(replace(endpoint, required_scopes=()) for endpoint in service.endpoints)
    target = Target(replace(service, endpoints=own), Path.cwd())
    parts = urlsplit(url)
    locator = Locator(parts.hostname or "", parts.port or 443, web=url)
    async with connect_local(target, timeout=timeout, locator=locator, **options) as client:
        yield client


def _reason(failure: McpFailure) -> str:
    text = printable(failure.text)
    match failure.kind:
        case "authentication":
            return f"{text}. Give a credential with --header or --token-file."
        case "refused":
            return f"the server refused to list its tools: {text} ({failure.code})"
        case "malformed":
            return f"what the server says cannot be read: {text}"
        case _:
            return f"the server cannot be reached: {text}"


def _headers(lines: Sequence[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not value.strip():
            raise ConfigError(f"--header must be 'NAME: VALUE'; got {brief(line)}.")
        found[name.strip()] = value.strip()
    return found
