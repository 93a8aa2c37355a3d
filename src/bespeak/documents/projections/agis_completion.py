"""Completes an exported AGIS document: what AGIS asks for and other contracts do not say is derived, not left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.documents.agis.shape import AGIS_CAPABILITY, AGTP_CAPABILITY

_GUIDANCE: Final = {"informational": 0.5, "reversible": 0.7, "irreversible": 0.85}
"""Confidence to require by impact. AGIS 6.2 asks for 0.85 where nothing can be undone, and allows less elsewhere."""
_VERSION: Final = "0.0.0"
"""Version of a service that has none."""
_SHOWN: Final = 3


def complete_agis(document: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """Return the document with the members that AGIS requires or recommends and that can be derived."""
    endpoints = [_endpoint(entry, catalog) for entry in document["endpoints"]]
    _name_tools(endpoints)
    vocabulary = {"domain": str(document["service"]).lower(), **document["vocabulary"]}
    derived = {
        "description": _description(endpoints),
        "version": _VERSION,
        "vocabulary": _in_order(vocabulary, "declared_verbs"),
        "endpoints": endpoints,
    }
    # The order of the document stays; new members go behind the address.
    start = ("agis", "service", "agtp", "description", "version")
    return _in_order({**derived, **document, "vocabulary": derived["vocabulary"], "endpoints": endpoints}, *start)


def _in_order(members: Mapping[str, Any], *first: str) -> dict[str, Any]:
    return {**{key: members[key] for key in first if key in members}, **members}


def _description(endpoints: list[dict[str, Any]]) -> str:
    names = [f"{endpoint['method']} {endpoint['path']}" for endpoint in endpoints]
    more = len(names) - _SHOWN
    return f"Offers {', '.join(names[:_SHOWN])}{f' and {more} more' if more > 0 else ''}."


def _endpoint(entry: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    semantic = dict(entry["semantic"])
    verb = catalog.verbs.get(entry["method"])
    if "capability" not in semantic and verb is not None:
        category = verb.categories[0]
        nearest = AGIS_CAPABILITY.get(category)
        semantic |= {"capability": nearest, AGTP_CAPABILITY: category} if nearest else {"capability": category}
    semantic.setdefault(
        "confidence_guidance", _GUIDANCE.get(semantic.get("impact_tier", ""), _GUIDANCE["irreversible"])
    )
    return {**entry, "semantic": semantic}


def _name_tools(endpoints: list[dict[str, Any]]) -> None:
    """Name the MCP tools that would share a name, which AGIS C derives from method and first segment."""
    short = [_short_name(endpoint) for endpoint in endpoints]
    taken = {endpoint["semantic"].get("mcp_tool_name") for endpoint in endpoints} | set(short)
    seen: set[str] = set()
    for endpoint, name in zip(endpoints, short, strict=True):
        if name in seen and "mcp_tool_name" not in endpoint["semantic"]:
            unique = whole = _whole_name(endpoint)
            number = 2
            while unique in taken:
                unique, number = f"{whole}_{number}", number + 1
            endpoint["semantic"]["mcp_tool_name"] = unique
            taken.add(unique)
        seen.add(name)


def _short_name(endpoint: Mapping[str, Any]) -> str:
    """Return the default name of a tool: method and first segment."""
    first = endpoint["path"].lstrip("/").partition("/")[0].strip("{}").replace("-", "_")
    return f"{endpoint['method']}_{first}".lower()


def _whole_name(endpoint: Mapping[str, Any]) -> str:
    """Return a name with all segments: fetch_notes_text, fetch_notes_by_note_id."""
    segments = [part for part in endpoint["path"].split("/") if part]
    words = [part.replace("-", "_") for part in segments if not part.startswith("{")]
    words += [f"by_{part.strip('{}')}" for part in segments[-1:] if part.startswith("{")]
    return "_".join((endpoint["method"], *words)).lower()
