"""QUERY: answers a need for information from the resources an operator has registered (core 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from bespeak.contract.http_value import as_text
from bespeak.contract.service import Resource
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGIS
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.mcp_resources import read_resource, resources_of
from bespeak.runtime.methods.needs import RESOURCES
from bespeak.runtime.threads import run_in_thread

_MAX_ITEMS: Final = 10_000
"""Maximum number of searched items per resource; larger ones deserve an endpoint of their own."""

_MAX_RESULTS: Final = 20


async def query(call: RoutedCall) -> Envelope | Refused:
    """Answer QUERY /. Resources are read in a thread, because their readers may block."""
    if "mcp_resource_uri" in call.input or "modality" in call.input:
        return await _read_mcp_resource(call)
    resources = call.routes.service.resources
    if not resources:
        return Refused(
            status.NOT_IMPLEMENTED,
            "not-implemented",
            "QUERY / has nothing to search: this server has registered no resource. "
            "Its informational endpoints are listed by DISCOVER /methods.",
            {"missing": RESOURCES},
        )
    wanted = call.input.get("scope")
    names = [wanted] if isinstance(wanted, str) else wanted
    chosen = [resource for resource in resources if names is None or resource.name in names]
    if not chosen:
        return Refused(
            status.NOT_FOUND,
            "resource-not-found",
            f"No resource is named {names!r}; there are {', '.join(resource.name for resource in resources)}.",
            {"resources": [resource.name for resource in resources]},
        )
    need = as_text(call.input["intent"])
    threshold = call.input.get("confidence_threshold", 0.0)
    results = await run_in_thread(_search, chosen, need, threshold)
    return Envelope({"results": results, "result_count": len(results)})


async def _read_mcp_resource(call: RoutedCall) -> Envelope | Refused:
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
        return Refused(status.NOT_FOUND, "resource-not-found", message, {"resources": known})
    return Envelope({"results": [{"content": found, "source": uri, "confidence": 1.0}], "result_count": 1})


def _search(resources: list[Resource], need: str, threshold: float) -> list[dict[str, Any]]:
    from bespeak.contract.relevance import Index  # noqa: PLC0415 - loads English, which most servers do without

    items: list[tuple[str, str | Mapping[str, Any]]] = []
    for resource in resources:
        items += [(resource.name, item) for item in islice(resource.items(), _MAX_ITEMS)]
    ranked = [
        (score, index) for score, index in Index(as_text(item) for _, item in items).rank(need) if score >= threshold
    ][:_MAX_RESULTS]
    return [{"content": items[index][1], "source": items[index][0], "confidence": score} for score, index in ranked]
