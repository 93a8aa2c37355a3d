"""How a service on the web is looked up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bespeak.documents.ai.document import MOST_CAPABILITIES

if TYPE_CHECKING:
    from bespeak.agent.discovery.address_guard import Resolver


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """What a user may say beyond the address."""

    allow_private: bool = False
    """Also ask hosts of private networks that documents or redirects name. The host of the address may be anywhere."""
    refresh: bool = False
    """Ask again for what is kept, also for what was not there."""
    cache: str | Path | None = None
    """The folder to keep documents in; `off` keeps none, None means the usual place."""
    most_capabilities: int | None = MOST_CAPABILITIES
    """How many capabilities of a document are taken; None takes all."""
    trusted_hosts: tuple[str, ...] = ()
    """Other hosts, `host` or `host:port`, that a credential may be sent to because a capability is there."""
    resolve: Resolver | None = None
    """Looks up names; None asks the system."""
