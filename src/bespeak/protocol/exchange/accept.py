"""Which of a server's descriptions of itself a request would rather have, by its `Accept` (RFC 9110 12.5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bespeak.protocol.exchange.headers import ACCEPT, MEDIA_AGIS, MEDIA_JSON, MEDIA_MANIFEST

AGIS_TYPES: Final = (MEDIA_AGIS, f"{MEDIA_AGIS}+json")
"""The names of the AGIS document."""
_LONGEST: Final = 1024
"""Nobody needs a longer header to say which of a few things is wanted."""


def prefers_agis(headers: Mapping[str, str]) -> bool:
    """Whether `Accept` names the AGIS document, and nothing better. A wildcard names nothing."""
    ranges = _ranges(headers)
    agis = max(ranges.get(name, 0.0) for name in AGIS_TYPES)
    return agis > 0 and agis >= max(ranges.get(name, 0.0) for name in (MEDIA_MANIFEST, MEDIA_JSON))


def names_manifest(headers: Mapping[str, str]) -> bool:
    """Whether `Accept` names the manifest by a type that nothing else has."""
    return _ranges(headers).get(MEDIA_MANIFEST, 0.0) > 0


def negotiate(headers: Mapping[str, str], offers: Sequence[str]) -> str:
    """The offer that suits best: the weightiest, the one that is named, the first. The first too if none suits.

    Nobody is turned away for an `Accept`: to read something else is better than to read nothing.
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
    """The media ranges with the weight of each; nothing for a header nobody would send."""
    accept = headers.get(ACCEPT)
    if accept is None or len(accept) > _LONGEST:
        return {}
    ranges: dict[str, float] = {}
    for entry in accept.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        ranges[name] = max(ranges.get(name, 0.0), _weight(parameters))
    return ranges


def _weight(parameters: list[str]) -> float:
    """The q of a media range (RFC 9110 12.4.2): 1 unless it says a number from 0 to 1."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0
