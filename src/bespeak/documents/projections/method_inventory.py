"""The compact inventory that DISCOVER /methods returns (AGTP-API 5.8)."""

from __future__ import annotations

from collections.abc import Iterable

from bespeak.contract.endpoint import Endpoint


def project_inventory(endpoints: Iterable[Endpoint]) -> list[dict[str, str]]:
    """List method, path and description of every published endpoint."""
    return [
        {"method": endpoint.method, "path": endpoint.path, "description": endpoint.description}
        for endpoint in endpoints
        if not endpoint.internal
    ]
