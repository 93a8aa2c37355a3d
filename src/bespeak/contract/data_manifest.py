"""The data manifest of an AGIS document: which classes of data a service would negotiate about (AGIS 8.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DataClass:
    """One class of data a service holds, in words that may be public."""

    name: str
    """The `class` of the document; Python keeps that word for itself."""
    description: str = ""
    formats: tuple[str, ...] = ()
    sensitivity: str | None = None
    requires_authorization: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry of `available_data`; what is not said is not there."""
        entry = {
            "class": self.name,
            "description": self.description or None,
            "formats": list(self.formats) or None,
            "sensitivity": self.sensitivity,
            "requires_authorization": self.requires_authorization,
        }
        return {key: value for key, value in entry.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataManifest:
    """The ceiling of negotiation: no endpoint is negotiated for a class that is not here."""

    available_data: tuple[DataClass, ...] = ()
    pre_auth_discovery: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The `data_manifest` block."""
        block: dict[str, Any] = {"available_data": [entry.to_json() for entry in self.available_data]}
        if self.pre_auth_discovery is not None:
            block["pre_auth_discovery"] = self.pre_auth_discovery
        return block
