"""The vocabulary block of an AGIS document: which verbs a service speaks, in which domain (AGIS 8.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What an AGIS document declares about its verbs."""

    declared_verbs: tuple[str, ...] = ()
    domain: str | None = None
    namespace: str | None = None
    """Tells verbs of the same name apart when an agent holds several services: `logistics.DISPATCH`."""
    version: str | None = None
    negotiable: bool = False
    """Agents may propose endpoints; the data manifest is the ceiling."""
