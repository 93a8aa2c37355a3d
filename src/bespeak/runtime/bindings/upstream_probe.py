"""A look at the upstreams before serving: those that cannot be reached are marked deferred (AGTP-API 13.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from bespeak.checks.lint.rules.handler import UPSTREAM_UNREACHABLE
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.text.diagnostics.diagnostic import Diagnostic

_SECONDS: Final = 3.0
"""Time for one upstream: a start must not wait long for what may come later."""
_AT_ONCE: Final = 50
_HTTPS: Final = 443


async def probe_upstreams(endpoints: Iterable[Endpoint], seconds: float = _SECONDS) -> list[Diagnostic]:
    """Connect to each upstream once, without sending anything; report the endpoints whose upstream does not answer.

    They are served as deferred: the first call connects again. Endpoints that the operator has marked are not probed.
    """
    by_place: dict[tuple[str, int], list[Endpoint]] = {}
    for endpoint in endpoints:
        handler = endpoint.handler
        if isinstance(handler, ExternalService) and not handler.deferred:
            parts = urlsplit(handler.url)
            by_place.setdefault((parts.hostname or "", parts.port or _HTTPS), []).append(endpoint)
    places = list(by_place)
    findings = []
    for start in range(0, len(places), _AT_ONCE):
        chunk = places[start : start + _AT_ONCE]
        for place, fault in zip(chunk, await asyncio.gather(*(_probe(*at, seconds) for at in chunk)), strict=True):
            findings += [] if fault is None else [_report(endpoint, place, fault) for endpoint in by_place[place]]
    return findings


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


def _report(endpoint: Endpoint, place: tuple[str, int], fault: str) -> Diagnostic:
    message = f"the upstream {place[0]}:{place[1]} cannot be reached ({fault}); the endpoint is deferred"
    advice = "Until it answers, calls are upstream_connection_error. Write `deferred = true` if that is intended."
    return UPSTREAM_UNREACHABLE.at(endpoint, "/handler/url", message, advice)
