"""A /.well-known/ai document: the compact description of a service for agents on HTTP, in one document or several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from bespeak.documents.rules import DOCUMENT_CUT, UNUSABLE_CAPABILITY
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.table import Table

MEMBERS: Final = ("aiendpoint", "service", "capabilities", "auth", "token_hints", "rate_limits", "meta")
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH")
AUTH_TYPES: Final = ("none", "apikey", "bearer", "oauth2")
MOST_CAPABILITIES: Final = 100  # number of capabilities per document that agents are advised to read (ai-discovery 6.5)

T = TypeVar("T")
_ID: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LONGEST: Final = {"name": 100, "description": 300, "about": 200, "returns": 300, "param": 500, "header": 64}


@dataclass(frozen=True, slots=True, kw_only=True)
class AiCapability:
    at: str  # pointer of its entry
    id: str
    description: str
    endpoint: str
    method: str
    params: Mapping[str, str] = field(default_factory=dict)
    returns: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AiDocument:
    aiendpoint: str = ""
    name: str = ""
    description: str = ""
    category: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    capabilities: tuple[AiCapability, ...] = ()
    auth_type: str | None = None
    auth_header: str | None = None
    auth_docs: str | None = None
    token_hints: Mapping[str, bool] = field(default_factory=dict)
    requests_per_minute: int | None = None
    agent_tier_available: bool | None = None
    meta: Mapping[str, str] = field(default_factory=dict)


def read_ai(root: Table) -> AiDocument:
    """Read a document from a root object by the producers' rules. Errors are added to its findings."""
    service = root.table("service")
    if not root.has("service"):
        root.missing("service", "It holds the name and the description of the service.")
    auth, limits = root.table("auth"), root.table("rate_limits")
    if not root.has("capabilities"):
        root.missing("capabilities", "List at least one thing the service can do.")
    elif root.value("capabilities") == []:
        root.error(WRONG_VALUE, "capabilities", "`capabilities` is empty", "List at least one.")
    # Consumers read the capabilities one by one, up to a limit.
    capabilities = tuple(map(_capability, [] if root.findings.tolerant else root.tables("capabilities")))
    if auth and not auth.has("type"):
        auth.missing("type", f"One of {', '.join(AUTH_TYPES)}.")
    document = AiDocument(
        aiendpoint=root.need_text("aiendpoint", 'The version of the format: "1.0".'),
        name=service.need_text("name") if service else "",
        description=service.need_text("description") if service else "",
        category=service.texts("category") if service else (),
        language=service.texts("language") if service else (),
        capabilities=capabilities,
        auth_type=auth.choice("type", AUTH_TYPES) if auth else None,
        auth_header=auth.text("header") if auth else None,
        auth_docs=auth.text("docs") if auth else None,
        token_hints=_members(root, "token_hints", ("compact_mode", "field_filtering", "delta_support"), Table.boolean),
        requests_per_minute=limits.count("requests_per_minute") if limits else None,
        agent_tier_available=limits.boolean("agent_tier_available") if limits else None,
        meta=_members(root, "meta", ("last_updated", "changelog", "status"), Table.text),
    )
    for table in (service, auth, limits):
        if table is not None:
            table.finish(strict=False)
    return document


def consume_ai(root: Table, *, most: int | None = MOST_CAPABILITIES) -> AiDocument | None:
    """Read a foreign document by the consumers' rules, from a root with tolerant findings; None if it is unusable.

    Unknown versions and members and unusable capabilities are skipped, and long texts are cut.
    """
    document = replace(read_ai(root), capabilities=())
    entries = root.data.get("capabilities")
    if not (document.aiendpoint and document.name.strip() and document.description.strip() and entries):
        return None
    kept: dict[str, AiCapability] = {}
    for entry in root.tables("capabilities"):
        if len(kept) == most:
            message = f"only the first {most} of {len(entries)} capabilities are read"
            root.findings.warning(DOCUMENT_CUT, message, "/capabilities", "Use --all to read all of them.")
            break
        capability = _capability(entry)
        if (wrong := _unusable(capability, kept)) is None:
            kept[capability.id] = _bounded(capability)
        else:
            root.findings.warning(UNUSABLE_CAPABILITY, f"a capability is left out: {wrong}", capability.at)
    if not kept:
        return None
    header = document.auth_header
    return replace(
        document,
        name=document.name[: _LONGEST["name"]],
        description=document.description[: _LONGEST["description"]],
        category=tuple(text[: _LONGEST["header"]] for text in document.category[:MOST_CAPABILITIES]),
        language=tuple(text[: _LONGEST["header"]] for text in document.language[:MOST_CAPABILITIES]),
        capabilities=tuple(kept.values()),
        auth_header=header if header is not None and len(header) <= _LONGEST["header"] else None,
    )


def _unusable(capability: AiCapability, others: Mapping[str, AiCapability]) -> str | None:
    """Return why a capability cannot be called, or None if it can."""
    if _ID.fullmatch(capability.id) is None:
        return f"its id is {brief(capability.id)}, but only lower-case letters, digits and underscores are allowed"
    if capability.id in others:
        return f"the id {capability.id} is used twice"
    if not capability.method:
        return f"{capability.id} has no known method"
    if not capability.endpoint.strip():
        return f"{capability.id} has no endpoint"
    if not capability.description.strip():
        return f"{capability.id} has no description"
    return None


def _bounded(capability: AiCapability) -> AiCapability:
    params = list(capability.params.items())[:100]
    return replace(
        capability,
        description=capability.description[: _LONGEST["about"]],
        params={name[: _LONGEST["about"]]: text[: _LONGEST["param"]] for name, text in params},
        returns=capability.returns[: _LONGEST["returns"]] if capability.returns is not None else None,
    )


def _capability(entry: Table) -> AiCapability:
    method = entry.choice("method", METHODS)
    if not entry.has("method"):
        entry.missing("method", f"One of {', '.join(METHODS)}.")
    capability = AiCapability(
        at=entry.at,
        id=entry.need_text("id"),
        description=entry.need_text("description"),
        endpoint=entry.need_text("endpoint"),
        method=method or "",
        params=entry.text_map("params"),
        returns=entry.text("returns"),
    )
    entry.finish(strict=False)
    return capability


def _members(root: Table, key: str, names: Iterable[str], read: Callable[[Table, str], T | None]) -> dict[str, T]:
    if (table := root.table(key)) is None:
        return {}
    found = {name: value for name in names if (value := read(table, name)) is not None}
    table.finish(strict=False)
    return found


MOST_BYTES: Final = 64_000  # 64 kilobytes of 1,000 bytes, the stricter reading of ai-discovery 4.5
MOST_PARTS: Final = 90  # maximum number of parts that one document links to, to leave room for capabilities


@dataclass(frozen=True, slots=True)
class EncodedCapability:
    group: str
    encoded: bytes
    verb: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    groups: tuple[str, ...]
    entries: tuple[EncodedCapability, ...]
    parts: tuple[Part, ...] = ()  # parts that this part links to


def fits(entries: Sequence[EncodedCapability], room: int) -> bool:
    """Return True if one document can list all entries; `room` is its space for capabilities, in bytes."""
    return len(entries) <= MOST_CAPABILITIES and size_of(entries) <= room


def size_of(entries: Iterable[EncodedCapability]) -> int:
    """Return the size of a list of capabilities with its separators, in bytes."""
    return sum(len(entry.encoded) + 1 for entry in entries)


def divide(entries: Iterable[EncodedCapability], room: int) -> list[Part]:
    """Divide entries into named parts, with index parts above them if one document cannot link to all."""
    by_group: dict[str, list[EncodedCapability]] = {}
    for entry in entries:
        by_group.setdefault(entry.group, []).append(entry)
    taken = set(by_group)
    parts: list[Part] = []
    for group in sorted(by_group):
        for number, piece in enumerate(_pieces(by_group[group], room), start=1):
            parts.append(Part(group if number == 1 else _free(group, number, taken), (group,), tuple(piece)))
    if len(parts) > MOST_PARTS:
        parts = _joined(parts, room)
    return _indexed(parts, taken) if len(parts) > MOST_PARTS else parts


def _pieces(entries: Iterable[EncodedCapability], room: int) -> Iterable[list[EncodedCapability]]:
    piece: list[EncodedCapability] = []
    left = room
    for entry in entries:
        size = len(entry.encoded) + 1
        if piece and (size > left or len(piece) == MOST_CAPABILITIES):
            yield piece
            piece, left = [], room
        piece.append(entry)
        left -= size
    if piece:
        yield piece


def _joined(parts: Iterable[Part], room: int) -> list[Part]:
    """Merge neighbouring parts while one document can hold them."""
    joined: list[Part] = []
    left = 0
    for part in parts:
        size = size_of(part.entries)
        if joined and size <= left and len(joined[-1].entries) + len(part.entries) <= MOST_CAPABILITIES:
            last = joined[-1]
            name = f"{last.groups[0]}-to-{part.groups[0]}"
            joined[-1] = Part(name, (*last.groups, *part.groups), (*last.entries, *part.entries))
            left -= size
        else:
            joined.append(part)
            left = room - size
    # A combined name may equal the name of a third group.
    names: set[str] = set()
    unique = []
    for part in joined:
        name = part.name if part.name not in names else _free(part.name, 2, names)
        names.add(name)
        unique.append(Part(name, part.groups, part.entries))
    return unique


def _indexed(parts: Sequence[Part], taken: set[str]) -> list[Part]:
    indexes = []
    for number, start in enumerate(range(0, len(parts), MOST_PARTS), start=1):
        within = tuple(parts[start : start + MOST_PARTS])
        groups = tuple(dict.fromkeys(group for part in within for group in part.groups))
        indexes.append(Part(_free("index", number, taken), groups, (), within))
    return indexes


def _free(name: str, number: int, taken: set[str]) -> str:
    while f"{name}-{number}" in taken:
        number += 1
    found = f"{name}-{number}"
    taken.add(found)
    return found
