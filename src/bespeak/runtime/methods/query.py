"""QUERY: answers from resources, rows of collections (core 4.1) and the documents about the service (core 9)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from bespeak.contract.http_route import as_text
from bespeak.contract.mcp_tool import META
from bespeak.contract.service import Resource
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGIS, MEDIA_JSON, MEDIA_MANIFEST
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import REQUIRES_RESOURCES, RoutedCall
from bespeak.runtime.concurrency import run_in_thread
from bespeak.runtime.extension import QUERY_ROWS
from bespeak.runtime.handling import handler, refusal

Fetch = Callable[[str], Awaitable[bytes | None]]
"""Returns the manifest or the AGIS document, by its media type, as the caller may see it; None if it may not."""


@dataclass(frozen=True, slots=True)
class McpResource:
    name: str
    title: str
    description: str
    media_type: str
    document: str  # media type of the document that it is, or that it is about

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


_MAX_ITEMS: Final = 10_000  # searched items per resource; larger ones deserve an endpoint of their own
_MAX_NAMES: Final = 50  # collections that a scope may name
_COLLECTION: Final = re.compile(r"[\w.:-]{1,128}")


@handler
async def query(call: RoutedCall) -> Envelope:
    """Answer QUERY /. Resources are read in a thread, because their readers may block."""
    if "mcp_resource_uri" in call.input or "modality" in call.input:
        return await _read_mcp_resource(call)
    resources = call.routes.service.resources
    if call.route.endpoint.missing is not None:
        message = (
            "QUERY / has nothing to search: this server has registered no resource and no collection. "
            "Its informational endpoints are listed by DISCOVER /methods."
        )
        raise refusal(status.NOT_IMPLEMENTED, "not-implemented", message, missing=REQUIRES_RESOURCES)
    wanted = call.input.get("scope")
    names = [wanted] if isinstance(wanted, str) else wanted
    asked = (
        None
        if names is None
        else [one for one in names if isinstance(one, str) and _COLLECTION.fullmatch(one)][:_MAX_NAMES]
    )
    chosen = [resource for resource in resources if names is None or resource.name in names]
    read = call.server.hooks[QUERY_ROWS]
    rows = await read(call, asked, _MAX_ITEMS)
    if names is not None and not (chosen or rows):
        known = [resource.name for resource in resources] + [name for name, *_ in await read(call, None, 1)]
        message = f"No resource or collection is named {names!r}; there are {', '.join(known) or 'none'}."
        raise refusal(status.NOT_FOUND, "resource-not-found", message, resources=known)
    need = as_text(call.input["intent"])
    threshold = call.input.get("confidence_threshold", 0.0)
    results = await run_in_thread(_search, chosen, rows, need, threshold)
    told = {"results": results, "result_count": len(results)}
    told |= {"searched": [one.name for one in chosen] + [name for name, *_ in rows]} if rows else {}
    incomplete = [name for name, _, more in rows if more]
    return Envelope({**told, "incomplete": incomplete} if incomplete else told)


async def _read_mcp_resource(call: RoutedCall) -> Envelope:
    """Read a resource of MCP: core 9 makes it a QUERY. It is one of the documents about the service."""
    server_id, uri = call.routes.service.identity.server_id, call.input.get("mcp_resource_uri", "")
    publication = call.table.publication

    async def fetch(media_type: str) -> bytes:
        made = publication.agis_for if media_type == MEDIA_AGIS else publication.manifest_for
        return made(call.principal).body

    found = await read_resource(server_id, uri, fetch)
    if found is None:
        known = list(resources_of(server_id))
        message = f"There is no MCP resource {uri[:200]!r}; there are {', '.join(known)}."
        raise refusal(status.NOT_FOUND, "resource-not-found", message, resources=known)
    return Envelope({"results": [{"content": found, "source": uri, "confidence": 1.0}], "result_count": 1})


def _search(
    resources: list[Resource], rows: list[tuple[str, list[Mapping[str, Any]], bool]], need: str, threshold: float
) -> list[dict[str, Any]]:
    from bespeak.contract.matching.text_index import TextIndex, read_text  # noqa: PLC0415 - loads English

    items: list[tuple[str, str | Mapping[str, Any]]] = [(name, row) for name, some, _ in rows for row in some]
    for resource in resources:
        items += [(resource.name, item) for item in islice(resource.items(), _MAX_ITEMS)]
    found = TextIndex(read_text(as_text(item)) for _, item in items).rank(need)
    ranked = [(score, index) for score, index in found if score >= threshold][:20]
    return [{"content": items[index][1], "source": items[index][0], "confidence": score} for score, index in ranked]
