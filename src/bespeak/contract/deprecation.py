"""Deprecation of an endpoint and the warning it puts on every response (AGTP-API 6.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """Deprecation of an endpoint: since which version, until which version, and its successor."""

    deprecated_in: str
    removed_in: str | None = None
    successor_method: str | None = None
    successor_path: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Write the `deprecated` block of a manifest."""
        block: dict[str, Any] = {"deprecated_in": self.deprecated_in}
        if self.removed_in is not None:
            block["removed_in"] = self.removed_in
        successor = {
            name: value
            for name, value in (("method", self.successor_method), ("path", self.successor_path))
            if value is not None
        }
        if successor:
            block["successor"] = successor
        return block

    def warning(self) -> str:
        """Write the value of the header AGTP-Endpoint-Warning."""
        successor = " ".join(part for part in (self.successor_method, self.successor_path) if part)
        return format_warning(successor or None, self.removed_in)


def format_warning(successor: str | None, removed_in: str | None) -> str:
    """Write `deprecated; successor=NAME; removed_in=VERSION`, without unknown parts (AGTP-API 4.4, 6.4)."""
    parts = ["deprecated"]
    if successor:
        parts.append(f"successor={successor}")
    if removed_in:
        parts.append(f"removed_in={removed_in}")
    return "; ".join(parts)
