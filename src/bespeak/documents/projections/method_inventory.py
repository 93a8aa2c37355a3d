"""The compact inventory that DISCOVER /methods answers with (AGTP-API 5.8)."""

from __future__ import annotations

from collections.abc import Iterable

from bespeak.contract.endpoint import Endpoint


def project_inventory(endpoints: Iterable[Endpoint]) -> list[dict[str, str]]:
    """Method, path and description of every endpoint that documents name, and nothing else."""
    return [
        {"method": endpoint.method, "path": endpoint.path, "description": endpoint.description}
        for endpoint in endpoints
        if not endpoint.internal
    ]
