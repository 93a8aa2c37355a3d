"""Vocabulary block of an AGIS document: the verbs of a service and their domain (AGIS 8.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The verbs that an AGIS document declares, and their domain."""

    declared_verbs: tuple[str, ...] = ()
    domain: str | None = None
    namespace: str | None = None
    """Prefix that separates equal verbs of several services: `logistics.DISPATCH`."""
    version: str | None = None
    negotiable: bool = False
    """True if agents may propose endpoints within the data manifest."""
