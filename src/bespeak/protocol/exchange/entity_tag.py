"""The tag of a document's exact bytes, by which a caller finds out that it holds them already (RFC 9110 8.8.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bespeak.protocol.exchange.headers import IF_NONE_MATCH


def entity_tag(body: bytes) -> str:
    """The tag, in its quotes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def is_held(tag: str, headers: Mapping[str, str]) -> bool:
    """Whether a request names the tag as one of what it holds; a cache on the way may have made it a weak one."""
    held = headers.get(IF_NONE_MATCH)
    return held is not None and any(each.strip().removeprefix("W/") in ("*", tag) for each in held.split(","))
