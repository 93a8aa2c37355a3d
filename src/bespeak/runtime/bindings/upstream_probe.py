"""A look at the upstreams before serving: those that cannot be reached are marked deferred (AGTP-API 13.2)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from bespeak.checks.lint.rules.handler import UPSTREAM_UNREACHABLE
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpTool
from bespeak.text.diagnostics.diagnostic import Diagnostic

_SECONDS: Final = 3.0  # time for one upstream: a start must not wait long for what may come later
_AT_ONCE: Final = 50


async def probe_upstreams(
    endpoints: Iterable[Endpoint], seconds: float = _SECONDS, environment: Mapping[str, str] = os.environ
) -> list[Diagnostic]:
    """Connect to each upstream once, sending nothing; report the endpoints whose upstream does not answer."""
    return [_report(*found) for found in await find_unreachable(endpoints, seconds, environment)]


async def find_unreachable(
    endpoints: Iterable[Endpoint], seconds: float = _SECONDS, environment: Mapping[str, str] = os.environ
) -> list[tuple[Endpoint, str, str]]:
    """Return the endpoints whose upstream does not answer, with its place and the reason."""
    by_place: dict[tuple[str, int], list[Endpoint]] = {}
    unreachable: list[tuple[Endpoint, str, str]] = []
    for endpoint in endpoints:
        handler = endpoint.handler
        url = handler.url if isinstance(handler, ExternalService) else ""
        if not isinstance(handler, ExternalService | McpTool) or handler.deferred:
            continue
        if isinstance(handler, McpTool):
            from bespeak.runtime.bindings.mcp.process import Launch, resolve_server  # noqa: PLC0415 - an extra, and slow

            launch = resolve_server(handler.mcp, environment)
            # Without its variables an endpoint is not registered.
            url, fault = (launch.url, launch.fault) if isinstance(launch, Launch) else ("", "")
            unreachable += [(endpoint, "the MCP server", fault)] if fault else []
        if url:
            parts = urlsplit(url)
            port = parts.port or (80 if parts.scheme == "http" else 443)
            by_place.setdefault((parts.hostname or "", port), []).append(endpoint)
    places = list(by_place)
    for start in range(0, len(places), _AT_ONCE):
        chunk = places[start : start + _AT_ONCE]
        for place, reason in zip(chunk, await asyncio.gather(*(_probe(*at, seconds) for at in chunk)), strict=True):
            if reason is not None:
                at = f"the upstream {place[0]}:{place[1]}"
                unreachable += [(endpoint, at, reason) for endpoint in by_place[place]]
    return unreachable


async def _probe(host: str, port: int, seconds: float) -> str | None:
    """Return why a connection fails; None if it succeeds."""
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return f"no connection within {seconds:g} s"
    except (OSError, UnicodeError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return None


def _report(endpoint: Endpoint, place: str, fault: str) -> Diagnostic:
    message = f"{place} cannot be reached ({fault}); the endpoint is deferred"
    advice = "Until it answers, calls are upstream_connection_error. Write `deferred = true` if that is intended."
    at = "/handler/mcp" if isinstance(endpoint.handler, McpTool) else "/handler/url"
    return UPSTREAM_UNREACHABLE.at(endpoint, at, message, advice)
