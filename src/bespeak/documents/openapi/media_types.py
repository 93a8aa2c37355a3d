"""Choice of a media type, and default schemas for bodies without one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bespeak.protocol.exchange.media_type import FORM, essence

JSON: Final = "application/json"
MULTIPART: Final = "multipart/form-data"

_ANY: Final = frozenset({"*/*", "application/*", "*"})


def is_json(media_type: str) -> bool:
    """Return True if a body of this type is JSON."""
    kind = essence(media_type)
    return kind in {JSON, "text/json"} or kind.endswith("+json")


def sent_type(media_type: str) -> str:
    """Return the type to send: JSON if any type is allowed."""
    return JSON if essence(media_type) in _ANY else media_type.strip()


def preferred(offered: Iterable[str]) -> list[str]:
    """Sort media types, the best first: JSON, forms, then in the given order."""
    return sorted(offered, key=_rank)


def default_schema(media_type: str) -> dict[str, Any]:
    """Return the schema of a body that is described by its type only; bytes become base64 in a contract."""
    kind = essence(media_type)
    if is_json(kind) or kind in _ANY:
        return {}
    if kind in {FORM, MULTIPART}:
        return {"type": "object"}
    if kind.startswith("text/") or kind.endswith(("xml", "yaml", "javascript")):
        return {"type": "string"}
    return {"type": "string", "contentEncoding": "base64"}


def is_binary(media_type: str) -> bool:
    """Return True if a body of this type is neither text nor has parts."""
    return "contentEncoding" in default_schema(media_type)


def _rank(media_type: str) -> int:
    kind = essence(media_type)
    if kind == JSON:
        return 0
    if is_json(kind):
        return 1
    if kind in _ANY:
        return 2
    return {FORM: 3, MULTIPART: 4}.get(kind, 5)
