"""The limit of open files: raised as far as the system allows, and the limit of connections that follows from it."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from typing import Final

from bespeak.app.server.settings import Settings

_logger = logging.getLogger(__name__)

RESERVE: Final = 256
"""Descriptors that are not for connections: the store, files of handlers, upstreams, peers that are being refused."""


def fit_connections(settings: Settings) -> Settings:
    """Raise the limit of open files for this process and its workers; lower `max_connections` if that is not enough."""
    wanted = settings.max_connections
    limit = _raise_limit(2 * wanted + RESERVE)  # a request may open one file or upstream for each connection
    if limit is None:
        return settings
    possible = limit - min(RESERVE, limit // 2)
    if possible >= wanted:
        return settings
    _logger.warning(
        "max_connections is lowered from %d to %d: this process may open only %d files; raise the limit (ulimit -Hn)",
        wanted,
        possible,
        limit,
    )
    return replace(settings, max_connections=possible)


def _raise_limit(wanted: int) -> int | None:
    """Raise the soft limit up to the hard one; return the limit in force, None if there is none."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    aim = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if aim > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
        except (OSError, ValueError):  # some systems refuse less than their hard limit
            return soft
        return aim
    return soft
