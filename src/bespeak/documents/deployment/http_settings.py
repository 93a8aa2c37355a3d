"""`[http]` of a bespeak.toml: how the service appears on the web."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.table import Table

CATEGORIES: Final = (
    *("productivity", "ecommerce", "finance", "news", "weather", "maps", "search", "data", "communication"),
    *("calendar", "storage", "media", "health", "education", "travel", "food", "government", "developer"),
)
"""ai-discovery 3.2: what a service may be classified as."""

EVERYBODY: Final = "*"
"""Among the origins: pages of all sites."""

_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_VISIBLE: Final = re.compile(r"[!-~]{1,2000}")
"""What an address is written with. It stands in every document, some of which may have 64,000 bytes in all."""
_PORTS: Final = {"http": 80, "https": 443}


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
        language=_languages(block) or ("en",),
        auth_docs=_address(block, "auth_docs"),
        changelog=_address(block, "changelog"),
        status_page=_address(block, "status_page"),
        agent_tier=block.boolean("agent_tier"),
        ai_alias=block.boolean("ai_alias") or False,
        cors=_origins(block),
        trusted_proxies=_networks(block),
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


def _languages(block: Table) -> tuple[str, ...]:
    given = _unique(block, "language")
    for tag in given:
        if _LANGUAGE.fullmatch(tag) is None:
            message = f"`language` has {brief(tag)}, which is no tag of BCP 47"
            block.findings.error("Y894", message, block.pointer("language"), "Write it like en or de-CH.")
    return tuple(tag for tag in given if _LANGUAGE.fullmatch(tag) is not None)


def _origins(block: Table) -> tuple[str, ...]:
    """The origins as browsers write them; one that is written otherwise would never be met."""
    found: dict[str, None] = {}
    for text in _unique(block, "cors"):
        origin = EVERYBODY if text == EVERYBODY else _origin(text)
        if origin is None:
            message = f"`cors` has {brief(text)}, which is no origin"
            advice = 'Write scheme and host like https://desk.example, without a path; or "*" for pages of all sites.'
            block.findings.error("Y891", message, block.pointer("cors"), advice)
        else:
            found[origin] = None
    return tuple(found)


def _origin(text: str) -> str | None:
    parts = _split(text)
    if parts is None or EVERYBODY in text or parts.path not in ("", "/") or parts.query or parts.fragment:
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _networks(block: Table) -> tuple[str, ...]:
    found = []
    for text in _unique(block, "trusted_proxies"):
        try:
            ipaddress.ip_network(text)
        except ValueError:
            message = f"`trusted_proxies` has {brief(text)}, which is no address and no network"
            advice = "Write addresses like 10.0.0.7 or networks like 10.0.0.0/8, of the proxies and of nobody else."
            block.findings.error("Y893", message, block.pointer("trusted_proxies"), advice)
        else:
            found.append(text)
    return tuple(found)


def _unique(block: Table, key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(block.texts(key)))


def _address(block: Table, key: str) -> str | None:
    text = block.text(key)
    if text is None:
        return None
    parts = _split(text)
    # Endpoints are appended to the service's own address, so that nothing may stand behind its path.
    if parts is None or (key == "url" and (parts.query or parts.fragment or "?" in text or "#" in text)):
        message = f"`{key}` is {brief(text)}, which is no address of the web"
        block.findings.error("Y891", message, block.pointer(key), "Write it like https://rooms.example.")
        return None
    return text.rstrip("/") if key == "url" else text


def _split(text: str) -> SplitResult | None:
    """The parts of an address of the web; None for what is none, or holds credentials."""
    if _VISIBLE.fullmatch(text) is None:
        return None
    try:
        parts = urlsplit(text)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None
