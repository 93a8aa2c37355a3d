"""The bootstrap at /.well-known/agtp: where AGTP is spoken, for whoever knows a domain only (core 3)."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.contract.service import AGTP_VERSION, Service

PATH: Final = "/.well-known/agtp"

_AUTHORITY: Final = re.compile(r"agtp://(?:[^@/?#]*@)?(\[[^\]/?#]*\]|[^:/?#]*)(?::([0-9]{1,5}))?")


def project_bootstrap(service: Service, *, port: int, updated: str) -> dict[str, Any]:
    """The document of a server that listens for AGTP on `port`; an address in the contract that names one goes before.

    There is no `verification`: neither the domain name system nor a log has anything of this server to verify by.
    """
    found = _AUTHORITY.match(service.address)
    host = found[1] if found else service.identity.server_id
    named = found[2] if found else None
    # An address without a port means the usual one, wherever this process listens.
    authority = f"{host}:{named or (4480 if service.agtp else port)}"
    root = f"agtp://{authority}/agents"
    return {
        "agtp_version": AGTP_VERSION,
        "endpoint": authority,
        "namespace_root": root,
        "issuer": f"agtp://{host}",
        "discovery": {"namespace_document": root, "well_known_updated_at": updated},
    }
