"""Data manifest of an AGIS document: the classes of data that may be negotiated (AGIS 8.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bespeak.text.reading.setting import setting, tables


@dataclass(frozen=True, slots=True, kw_only=True)
class DataClass:
    """A class of data that a service holds, described for the public."""

    name: str = setting(
        "",
        "The name of the class.",
        key="class",
        required=True,
        advice="Name the class, like customer-profile.",
    )
    description: str = setting("", "What it contains, for people.")
    formats: tuple[str, ...] = setting((), "The formats it is available in.")
    sensitivity: str | None = setting(None, "The sensitivity of the data.")
    requires_authorization: bool | None = setting(None, "True if agents need authority for it.", kind="boolean")

    def to_json(self) -> dict[str, Any]:
        """Write the entry of `available_data`, without empty fields."""
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
    """The classes of data that agents may negotiate about. Other data is out of reach."""

    available_data: tuple[DataClass, ...] = tables(DataClass)
    pre_auth_discovery: bool | None = setting(
        None, "True if anonymous callers may see the data manifest.", kind="boolean"
    )

    def to_json(self) -> dict[str, Any]:
        """Write the `data_manifest` block."""
        block: dict[str, Any] = {"available_data": [entry.to_json() for entry in self.available_data]}
        if self.pre_auth_discovery is not None:
            block["pre_auth_discovery"] = self.pre_auth_discovery
        return block
