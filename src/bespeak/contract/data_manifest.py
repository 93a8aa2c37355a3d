"""The data manifest of an AGIS document: which classes of data a service would negotiate about (AGIS 8.3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataClass:
    """One class of data a service holds, in words that may be public."""

    name: str
    """The `class` of the document; Python keeps that word for itself."""
    description: str = ""
    formats: tuple[str, ...] = ()
    sensitivity: str | None = None
    requires_authorization: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataManifest:
    """The ceiling of negotiation: no endpoint is negotiated for a class that is not here."""

    available_data: tuple[DataClass, ...] = ()
    pre_auth_discovery: bool | None = None
