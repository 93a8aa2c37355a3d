"""The bootstrap document at /.well-known/agtp: the AGTP address for clients that know only a domain (core 3)."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.contract.service import AGTP_VERSION, Service

PATH: Final = "/.well-known/agtp"

_AUTHORITY: Final = re.compile(r"agtp://(?:[^@/?#]*@)?(\[[^\]/?#]*\]|[^:/?#]*)(?::([0-9]{1,5}))?")


def project_bootstrap(service: Service, *, port: int, updated: str) -> dict[str, Any]:
    """Build the document of a server that listens for AGTP on `port`; a port in the contract's address wins.

    `verification` is omitted: this server has no DNS or log records to verify by.
    """
    found = _AUTHORITY.match(service.address)
    host = found[1] if found else service.identity.server_id
    named = found[2] if found else None
    # An address without a port means the default port, even if this process listens on another.
    authority = f"{host}:{named or (4480 if service.agtp else port)}"
    root = f"agtp://{authority}/agents"
    return {
        "agtp_version": AGTP_VERSION,
        "endpoint": authority,
        "namespace_root": root,
        "issuer": f"agtp://{host}",
        "discovery": {"namespace_document": root, "well_known_updated_at": updated},
    }
