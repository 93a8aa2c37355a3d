"""Which of a server's descriptions of itself a request would rather have: its manifest or its AGIS document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.exchange.headers import ACCEPT, MEDIA_AGIS, MEDIA_JSON, MEDIA_MANIFEST

_AGIS: Final = frozenset({MEDIA_AGIS, f"{MEDIA_AGIS}+json"})
_MANIFEST: Final = frozenset({MEDIA_MANIFEST, MEDIA_JSON})
_LONGEST: Final = 1024
"""Nobody needs a longer header to say which of two things is wanted."""


def prefers_agis(headers: Mapping[str, str]) -> bool:
    """Whether `Accept` names the AGIS document, and nothing better. A wildcard names nothing."""
    accept = headers.get(ACCEPT)
    if accept is None or len(accept) > _LONGEST:
        return False
    agis = manifest = 0.0
    for entry in accept.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        if name in _AGIS:
            agis = max(agis, _weight(parameters))
        elif name in _MANIFEST:
            manifest = max(manifest, _weight(parameters))
    return agis > 0 and agis >= manifest


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
