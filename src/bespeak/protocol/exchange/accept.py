"""Content negotiation between a server's descriptions of itself by `Accept` (RFC 9110 12.5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bespeak.protocol.exchange.headers import ACCEPT, MEDIA_AGIS, MEDIA_JSON, MEDIA_MANIFEST

AGIS_TYPES: Final = (MEDIA_AGIS, f"{MEDIA_AGIS}+json")
"""Media types of the AGIS document."""
_LONGEST: Final = 1024
"""Limit of an Accept header in characters."""


def prefers_agis(headers: Mapping[str, str]) -> bool:
    """Return True if `Accept` names the AGIS document and nothing with a higher weight. Wildcards do not count."""
    ranges = _ranges(headers)
    agis = max(ranges.get(name, 0.0) for name in AGIS_TYPES)
    return agis > 0 and agis >= max(ranges.get(name, 0.0) for name in (MEDIA_MANIFEST, MEDIA_JSON))


def names_manifest(headers: Mapping[str, str]) -> bool:
    """Return True if `Accept` names the manifest by a type of its own."""
    return _ranges(headers).get(MEDIA_MANIFEST, 0.0) > 0


def negotiate(headers: Mapping[str, str], offers: Sequence[str]) -> str:
    """Choose the offer with the highest weight, then the most specific, then the first; the first if none is
    acceptable.

    No request is refused for its `Accept`: another representation is better than none.
    """
    ranges = _ranges(headers)
    best, suited = offers[0], (0.0, 0)
    for offer in offers:
        kind = offer.partition("/")[0]
        names = (offer, f"{kind}/*", "*/*")
        nearest = next((place for place, name in enumerate(names) if name in ranges), None)
        if nearest is not None and ranges[names[nearest]] > 0:
            suits = (ranges[names[nearest]], -nearest)
            if suited[0] == 0 or suits > suited:
                best, suited = offer, suits
    return best


def _ranges(headers: Mapping[str, str]) -> dict[str, float]:
    """Parse the media ranges with their weights; return nothing for a header that is too long."""
    accept = headers.get(ACCEPT)
    if accept is None or len(accept) > _LONGEST:
        return {}
    ranges: dict[str, float] = {}
    for entry in accept.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        ranges[name] = max(ranges.get(name, 0.0), _weight(parameters))
    return ranges


def _weight(parameters: list[str]) -> float:
    """Return the q of a media range (RFC 9110 12.4.2): 1 unless it has a number from 0 to 1."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0
