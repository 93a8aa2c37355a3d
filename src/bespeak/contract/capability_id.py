"""Program-friendly endpoint names, derived from the endpoint alone, so that no other endpoint changes them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from bespeak.contract.endpoint import Endpoint

LONGEST: Final = 64
"""Maximum length of an id (ai-discovery 3.3)."""

_DIGEST: Final = 8
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CHOSEN: Final = re.compile(r"[a-z][a-z0-9_]*")


def capability_ids(endpoints: Iterable[Endpoint]) -> dict[tuple[str, str], str]:
    """Return the id of each endpoint by its key: its tool name if it has one, else a derived id.

    Only tool names can collide. The later endpoint then gets a digest appended.
    """
    ids: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for endpoint in endpoints:
        chosen = endpoint.semantic.mcp_tool_name or ""
        usable = len(chosen) <= LONGEST and _CHOSEN.fullmatch(chosen) is not None
        found = chosen if usable else capability_id(endpoint)
        if found in taken:
            found = marked(found, endpoint)
        taken.add(found)
        ids[endpoint.key] = found
    return ids


def capability_id(endpoint: Endpoint) -> str:
    """Derive an id: `FIND /rooms/{room_id}/free-beds` becomes `find_rooms_by_room_id__free_beds`.

    A hyphen becomes one underscore and a slash two: no two paths of plain words get the same id. A path of other words
    and an id that is too long get a digest. Names of path parameters may be anything, because two paths that differ
    only in them cannot both be served.
    """
    text, plain = _words(endpoint.method), endpoint.method.isalpha()
    for number, segment in enumerate(endpoint.path.strip("/").split("/")):
        if segment.startswith("{"):
            words = _words(_HUMP.sub("_", segment)) or "id"
            text += f"_by_{words}"
        elif segment:
            words = _words(segment)
            plain = plain and _PLAIN.fullmatch(segment) is not None
            text += f"_{words}" if number == 0 else f"__{words}"
        else:
            continue
        plain = plain and "by" not in words.split("_")
    if not text[:1].isalpha():
        text, plain = f"call_{text}", False
    return text if plain and len(text) <= LONGEST else marked(text, endpoint)


def group_of(endpoint: Endpoint) -> str:
    """Return the group of an endpoint: its namespace, else the first segment of its path."""
    named = endpoint.namespace or next(
        (segment for segment in endpoint.path.split("/") if segment and not segment.startswith("{")), ""
    )
    return _NO_WORD.sub("-", named.lower()).strip("-")[:40] or "service"


def grouped(endpoints: Iterable[Endpoint]) -> dict[str, list[Endpoint]]:
    """Return endpoints by group, the largest group first."""
    groups: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        groups.setdefault(group_of(endpoint), []).append(endpoint)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def marked(text: str, endpoint: Endpoint) -> str:
    """Append a digest of the endpoint to an id; shorten the id if that makes it too long."""
    digest = hashlib.sha256(str(endpoint).encode(errors="replace")).hexdigest()[:_DIGEST]
    return f"{text[: LONGEST - _DIGEST - 1].rstrip('_')}_{digest}"


def _words(text: str) -> str:
    return _NO_WORD.sub("_", text.lower()).strip("_")
