"""Names and descriptions of endpoints for programs and models: capability ids and MCP tool names (AGIS 6.2, C.2)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.text.identifiers import slug, snake

LONGEST: Final = 64  # maximum length of an id (ai-discovery 3.3)
_DIGEST: Final = 8
_PLAIN: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CHOSEN: Final = re.compile(r"[a-z][a-z0-9_]*")


def capability_ids(endpoints: Iterable[Endpoint]) -> dict[tuple[str, str], str]:
    """Return the id of each endpoint: its tool name, else a derived id. A second one of a name gets a digest."""
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

    A hyphen becomes one underscore and a slash two, so paths of plain words get different ids. Others get a digest.
    """
    text, plain = slug(endpoint.method), endpoint.method.isalpha()
    for number, segment in enumerate(endpoint.path.strip("/").split("/")):
        if segment.startswith("{"):
            words = snake(segment) or "id"
            text += f"_by_{words}"
        elif segment:
            words = slug(segment)
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
    return slug(named, "-")[:40] or "service"


def grouped(endpoints: Iterable[Endpoint]) -> dict[str, list[Endpoint]]:
    groups: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        groups.setdefault(group_of(endpoint), []).append(endpoint)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def marked(text: str, endpoint: Endpoint) -> str:
    """Append a digest of the endpoint to an id; shorten the id if that makes it too long."""
    digest = hashlib.sha256(str(endpoint).encode(errors="replace")).hexdigest()[:_DIGEST]
    return f"{text[: LONGEST - _DIGEST - 1].rstrip('_')}_{digest}"


_USABLE: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST}}}")  # names that the services of models accept


def default_tool_name(method: str, path: str) -> str:
    """Return the default name of a tool: method and first segment (AGIS C.2(a))."""
    segment = path.lstrip("/").partition("/")[0].strip("{}").replace("-", "_")
    return f"{method}_{segment}".lower() if segment else method.lower()


def tool_names(endpoints: Sequence[Endpoint]) -> list[str]:
    """Return the name of each endpoint's tool: the declared one, the default, or one that names its whole path.

    Among equals the earlier endpoint keeps the name, so one that is added at run time renames no other.
    """
    names: dict[int, str] = {}
    taken: set[str] = set()
    for wanted in (_declared, lambda one: default_tool_name(one.method, one.path), capability_id, _marked):
        for number, endpoint in enumerate(endpoints):
            name = wanted(endpoint)
            if number not in names and name not in taken and _USABLE.fullmatch(name):
                names[number] = name
                taken.add(name)
    # What is left describes the same method and path as another one.
    return [names.get(number) or f"{_marked(endpoint)[:50]}_{number}" for number, endpoint in enumerate(endpoints)]


def _marked(endpoint: Endpoint) -> str:
    return marked(capability_id(endpoint), endpoint)


def _declared(endpoint: Endpoint) -> str:
    return endpoint.semantic.mcp_tool_name or ""


def describe_tool(endpoint: Endpoint, names: Mapping[tuple[str, str], str]) -> str:
    """Describe an endpoint: the intent first, then what a caller should know (AGIS C.2(b))."""
    return "\n".join(_lines(endpoint, names))


def _lines(endpoint: Endpoint, names: Mapping[tuple[str, str], str]) -> Iterator[str]:
    semantic = endpoint.semantic
    yield semantic.intent or endpoint.description or str(endpoint)
    if semantic.outcome:
        yield f"Outcome: {semantic.outcome}"
    if semantic.impact == "irreversible":
        yield "It cannot be undone" + (
            "." if endpoint.confirm is False else ", so a person confirms it before it runs."
        )
    if endpoint.deprecated is not None:
        yield _deprecation(endpoint, endpoint.deprecated, names)
    if semantic.parameter_hints:
        yield "Hints: " + "; ".join(f"{name} = {_phrases(hint)}" for name, hint in semantic.parameter_hints.items())


def _phrases(hint: object) -> str:
    phrases = hint if isinstance(hint, list) else [hint]
    texts = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in phrases)
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def _deprecation(endpoint: Endpoint, deprecated: Deprecation, names: Mapping[tuple[str, str], str]) -> str:
    successor = (deprecated.successor_method or endpoint.method, deprecated.successor_path or endpoint.path)
    use = f" Use {names.get(successor, ' '.join(successor))} instead." if successor != endpoint.key else ""
    gone = f"; it will be removed in {deprecated.removed_in}" if deprecated.removed_in else ""
    return f"Deprecated since {deprecated.deprecated_in}{gone}.{use}"
