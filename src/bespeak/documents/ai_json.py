"""A /.well-known/ai document: what a service offers to agents over HTTP, in its compact form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bespeak.documents.table import Table

MEMBERS: Final = ("aiendpoint", "service", "capabilities", "auth", "token_hints", "rate_limits", "meta")
"""Nothing else may stand at the top of a document."""
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH")
AUTH_TYPES: Final = ("none", "apikey", "bearer", "oauth2")


@dataclass(frozen=True, slots=True, kw_only=True)
class AiCapability:
    """One thing a service can do."""

    at: str
    """Pointer of its entry."""
    id: str
    description: str
    endpoint: str
    method: str
    params: Mapping[str, str] = field(default_factory=dict)
    returns: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AiDocument:
    """The document as far as it could be read."""

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
    """The document in a root object, by the producers' rules. What is wrong is noted in its findings."""
    service = root.table("service")
    if not root.has("service"):
        root.missing("service", "It holds the name and the description of the service.")
    auth, limits = root.table("auth"), root.table("rate_limits")
    capabilities = _read_capabilities(root)
    document = AiDocument(
        aiendpoint=root.need_text("aiendpoint", 'The version of the format: "1.0".'),
        name=service.need_text("name") if service else "",
        description=service.need_text("description") if service else "",
        category=service.texts("category") if service else (),
        language=service.texts("language") if service else (),
        capabilities=capabilities,
        auth_type=_auth_type(auth) if auth else None,
        auth_header=auth.text("header") if auth else None,
        auth_docs=auth.text("docs") if auth else None,
        token_hints=_booleans(root.table("token_hints"), ("compact_mode", "field_filtering", "delta_support")),
        requests_per_minute=limits.count("requests_per_minute") if limits else None,
        agent_tier_available=limits.boolean("agent_tier_available") if limits else None,
        meta=_texts(root.table("meta"), ("last_updated", "changelog", "status")),
    )
    for table in (service, auth, limits):
        if table is not None:
            table.finish()
    return document


def _read_capabilities(root: Table) -> tuple[AiCapability, ...]:
    if not root.has("capabilities"):
        root.missing("capabilities", "List at least one thing the service can do.")
    elif root.value("capabilities") == []:
        root.findings.error("D104", "`capabilities` is empty", root.pointer("capabilities"), "List at least one.")
    return tuple(_read_capability(entry) for entry in root.tables("capabilities"))


def _read_capability(entry: Table) -> AiCapability:
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
    entry.finish()
    return capability


def _auth_type(auth: Table) -> str | None:
    if not auth.has("type"):
        auth.missing("type", f"One of {', '.join(AUTH_TYPES)}.")
    return auth.choice("type", AUTH_TYPES)


def _booleans(table: Table | None, keys: tuple[str, ...]) -> dict[str, bool]:
    if table is None:
        return {}
    found = {key: value for key in keys if (value := table.boolean(key)) is not None}
    table.finish()
    return found


def _texts(table: Table | None, keys: tuple[str, ...]) -> dict[str, str]:
    if table is None:
        return {}
    found = {key: value for key in keys if (value := table.text(key)) is not None}
    table.finish()
    return found
