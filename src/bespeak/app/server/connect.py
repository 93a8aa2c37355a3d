"""`connect` and `connect_sync`: open a client for a service at a URI, or for a target inside this process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

from bespeak.agent.client import connect as agent
from bespeak.agent.client.connect import AsyncBlock
from bespeak.agent.client.errors import NothingDiscoveredError
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.synchronous import blocking
from bespeak.errors import BespeakError, ConfigError
from bespeak.protocol.address import is_web

if TYPE_CHECKING:
    from bespeak.app.authoring.app import App

P = ParamSpec("P")
_OF_TOOLS: Final = ("as_", "agent_id", "scopes", "timeout", "retry")  # options; no credential goes to such a server
_TOOLS: Final = ("/mcp", "/sse")  # how addresses of MCP servers end


def is_tools(service: str) -> bool:
    """Return True if an address may be that of an MCP server, if it is not that of something else."""
    return is_web(service) and service.rstrip("/").endswith(_TOOLS)


@asynccontextmanager
async def _open_tools(
    url: str, found: AsyncBlock[ServiceClient], options: Mapping[str, Any]
) -> AsyncIterator[ServiceClient]:
    """Open a client for an address; if nothing is discovered there, for the tools of an MCP server."""
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(found)
        except NothingDiscoveredError as nothing:
            from bespeak.app.server.mcp_source import connect_tools  # noqa: PLC0415 - slow to load

            used = {name: one for name, one in options.items() if name in _OF_TOOLS}
            try:
                client = await stack.enter_async_context(connect_tools(url, **used))
            except BespeakError as error:
                raise NothingDiscoveredError(f"{nothing} As an MCP server: {error}", nothing.discovered) from error
        yield client


def _with_targets(
    opener: Callable[Concatenate[str, P], AsyncBlock[ServiceClient]],
) -> Callable[Concatenate[App | str | Path, P], AsyncBlock[ServiceClient]]:
    """Make an opener of URIs accept targets too. The options stay declared in one place."""

    @functools.wraps(opener)
    def opened(service: App | str | Path, /, *arguments: P.args, **options: P.kwargs) -> AsyncBlock[ServiceClient]:
        if isinstance(service, str) and "://" in service:
            found = opener(service, *arguments, **options)
            return AsyncBlock(_open_tools(service, found, options)) if is_tools(service) else found
        from bespeak.app.server.local import connect_local  # noqa: PLC0415 - a client of a URI needs no server

        local: Callable[..., AsyncBlock[ServiceClient]] = connect_local
        unused = options.keys() - inspect.signature(connect_local).parameters
        if unused:
            names = ", ".join(sorted(unused))
            raise ConfigError(f"{str(service)!r} is called inside this process, where {names} cannot apply.")
        return local(service, *arguments, **options)

    signature = inspect.signature(opener)
    uri, *others = signature.parameters.values()
    service = uri.replace(name="service", annotation="App | str | Path")
    opened.__signature__ = signature.replace(parameters=[service, *others])  # type: ignore[attr-defined] # typeshed lacks it
    return opened


connect = _with_targets(agent.connect)
connect_sync = blocking(connect)  # `connect` for a plain `with` block: same options, blocking methods
