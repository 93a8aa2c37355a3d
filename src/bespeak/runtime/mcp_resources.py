"""The documents about a service as MCP resources, which MCP clients read and QUERY / reads over AGTP (core 9)."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from bespeak.contract.mcp_tool import META
from bespeak.protocol.exchange.headers import MEDIA_AGIS, MEDIA_JSON, MEDIA_MANIFEST
from bespeak.runtime.threads import run_in_thread

Fetch = Callable[[str], Awaitable[bytes | None]]
"""Returns the manifest or the AGIS document, by its media type, as the caller may see it; None if it may not."""


@dataclass(frozen=True, slots=True)
class McpResource:
    """One resource."""

    name: str
    title: str
    description: str
    media_type: str
    document: str
    """Media type of the document that it is, or that it is about."""

    def entry(self, uri: str, document: bytes) -> dict[str, Any]:
        """Build its entry of resources/list. The size of a report is not known before it is made."""
        described = {"title": self.title, "description": self.description, "mimeType": self.media_type}
        entry: dict[str, Any] = {"uri": uri, "name": self.name, **described}
        if self is not _LINT:
            # A buyer names the digest of the manifest that it has read (core 2.3).
            entry |= {"size": len(document), "_meta": {f"{META}sha256": hashlib.sha256(document).hexdigest()}}
        return entry


_LINT: Final = McpResource(
    "lint",
    "Lint report",
    "What bespeak lint finds in the manifest: rules, severities, places and advice.",
    MEDIA_JSON,
    MEDIA_MANIFEST,
)
_RESOURCES: Final = (
    McpResource(
        "manifest",
        "Manifest",
        "The contract of the service: endpoints with schemas, impact, errors and scopes, and policies.",
        MEDIA_MANIFEST,
        MEDIA_MANIFEST,
    ),
    McpResource(
        "agis",
        "AGIS document",
        "The service in the AGIS language: intent, outcome and impact of every endpoint.",
        f"{MEDIA_AGIS}+json",
        MEDIA_AGIS,
    ),
    _LINT,
)


def resources_of(server_id: str) -> Mapping[str, McpResource]:
    """Return the resources of a server by URI. The URIs stay the same when the service changes."""
    authority = quote(server_id.lower(), safe=":[]")
    return {f"bespeak://{authority}/{resource.name}": resource for resource in _RESOURCES}


async def list_resources(server_id: str, fetch: Fetch) -> list[dict[str, Any]]:
    """Return the entries of resources/list that the caller may see."""
    found = []
    for uri, resource in resources_of(server_id).items():
        document = await fetch(resource.document)
        if document is not None:
            found.append(resource.entry(uri, document))
    return found


async def read_resource(server_id: str, uri: str, fetch: Fetch) -> dict[str, Any] | None:
    """Return the contents of a resource; None if there is none for the caller."""
    resource = resources_of(server_id).get(uri)
    document = None if resource is None else await fetch(resource.document)
    if resource is None or document is None:
        return None
    if resource is _LINT:
        # Some thousands of endpoints take seconds.
        text = await run_in_thread(_report, document, uri.replace("/lint", "/manifest"))
    else:
        text = document.decode()
    return {"uri": uri, "mimeType": resource.media_type, "text": text}


@lru_cache(maxsize=4)
def _report(manifest: bytes, shown: str) -> str:
    """Check a manifest, once: callers may see a few different ones."""
    from bespeak.checks.lint.manifest_report import report_manifest  # noqa: PLC0415 - slow to load

    return report_manifest(manifest, shown)
