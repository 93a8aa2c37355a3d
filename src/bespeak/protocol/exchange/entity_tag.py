"""Entity tags of documents, by which a caller learns that its copy is current (RFC 9110 8.8.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bespeak.protocol.exchange.headers import IF_NONE_MATCH


def entity_tag(body: bytes) -> str:
    """Return the tag, in quotes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def is_held(tag: str, headers: Mapping[str, str]) -> bool:
    """Return True if a request names the tag, weak or strong, in If-None-Match."""
    held = headers.get(IF_NONE_MATCH)
    return held is not None and any(each.strip().removeprefix("W/") in ("*", tag) for each in held.split(","))
