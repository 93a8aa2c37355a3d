"""Options for discovering a service on the web."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bespeak.documents.ai.document import MOST_CAPABILITIES

if TYPE_CHECKING:
    from bespeak.protocol.address_guard import Resolver


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Options of `bespeak.connect` for web addresses, passed as `web=`."""

    allow_private: bool = False
    """Follow documents and redirects into private networks. The host and port you name may always be private."""
    refresh: bool = False
    """Ignore cached documents and cached 404s."""
    cache: str | Path | None = None
    """Cache folder; `off` disables the cache, None uses the default folder."""
    most_capabilities: int | None = MOST_CAPABILITIES
    """Maximum number of capabilities to read from a document; None reads all."""
    trusted_hosts: tuple[str, ...] = ()
    """Other hosts that may receive the credential: `host`, which means https on port 443, or `host:port`."""
    resolve: Resolver | None = None
    """Name resolver; None uses the system's."""
