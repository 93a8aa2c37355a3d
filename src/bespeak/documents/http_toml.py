"""`[http]` of a bespeak.toml: how the service appears on the web."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from bespeak.diagnostics.brief import brief
from bespeak.documents.table import Table

CATEGORIES: Final = (
    *("productivity", "ecommerce", "finance", "news", "weather", "maps", "search", "data", "communication"),
    *("calendar", "storage", "media", "health", "education", "travel", "food", "government", "developer"),
)
"""ai-discovery 3.2: what a service may be classified as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """What the documents of the HTTP face say beyond the contract, and whom it answers."""

    url: str | None = None
    """Where the service is reached from outside, `https://rooms.example`; None for where it listens."""
    category: tuple[str, ...] = ()
    language: tuple[str, ...] = ("en",)
    auth_docs: str | None = None
    changelog: str | None = None
    status_page: str | None = None
    agent_tier: bool | None = None
    """Whether agents may ask for a higher rate; None says nothing."""
    ai_alias: bool = False
    """Whether `/ai` gives the same bytes as `/.well-known/ai`."""
    cors: tuple[str, ...] = ()
    """Origins whose pages may call; `*` for every one."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses whose word on the caller's own address is taken (X-Forwarded-For)."""
    related_services: tuple[str, ...] = ()
    """Other services an agent may want to know (AGIS 11.1)."""

    @property
    def prefix(self) -> str:
        """The path under which the service is mounted, without a slash at its end."""
        return urlsplit(self.url).path.rstrip("/") if self.url else ""


def read_http(root: Table) -> HttpSettings:
    """The `[http]` table; a value that is wrong is reported and keeps its default."""
    block = root.table("http")
    if block is None:
        return HttpSettings()
    settings = HttpSettings(
        url=_address(block, "url"),
        category=_categories(block),
        language=_unique(block, "language") or ("en",),
        auth_docs=_address(block, "auth_docs"),
        changelog=_address(block, "changelog"),
        status_page=_address(block, "status_page"),
        agent_tier=block.boolean("agent_tier"),
        ai_alias=block.boolean("ai_alias") or False,
        cors=_unique(block, "cors"),
        trusted_proxies=_unique(block, "trusted_proxies"),
        related_services=_unique(block, "related_services"),
    )
    block.finish()
    return settings


def _categories(block: Table) -> tuple[str, ...]:
    given = _unique(block, "category")
    for name in given:
        if name not in CATEGORIES:
            message = f"`category` has {brief(name)}, which is none of those there are"
            block.findings.error("Y890", message, block.pointer("category"), f"Choose from {', '.join(CATEGORIES)}.")
    return tuple(name for name in given if name in CATEGORIES)


def _unique(block: Table, key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(block.texts(key)))


def _address(block: Table, key: str) -> str | None:
    text = block.text(key)
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        # Endpoints are appended to the service's own address, so that nothing may stand behind its path.
        ends = key != "url" or not (parts.query or parts.fragment)
        usable = parts.scheme in ("https", "http") and bool(parts.hostname) and ends and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable:
        message = f"`{key}` is {brief(text)}, which is no address of the web"
        block.findings.error("Y891", message, block.pointer(key), "Write it like https://rooms.example.")
        return None
    return text.rstrip("/") if key == "url" else text
