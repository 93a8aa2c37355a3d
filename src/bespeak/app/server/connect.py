"""`connect` and `connect_sync`: open a client for a service at a URI, or for a target inside this process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from bespeak.agent.client import connect as agent
from bespeak.agent.client.connect import AsyncBlock
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.synchronous import blocking
from bespeak.errors import ConfigError

if TYPE_CHECKING:
    from bespeak.app.authoring.app import App

P = ParamSpec("P")


def _with_targets(
    opener: Callable[Concatenate[str, P], AsyncBlock[ServiceClient]],
) -> Callable[Concatenate[App | str | Path, P], AsyncBlock[ServiceClient]]:
    """Make an opener of URIs accept targets too. The options stay declared in one place."""

    @functools.wraps(opener)
    def opened(service: App | str | Path, /, *arguments: P.args, **options: P.kwargs) -> AsyncBlock[ServiceClient]:
        if isinstance(service, str) and "://" in service:
            return opener(service, *arguments, **options)
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
