"""Settings of the HTTP face: `[http]`. The published documents use them too."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from bespeak.documents.rules import LANGUAGE_TAG, PROXY_ADDRESS, UNKNOWN_CATEGORY, WEB_ADDRESS
from bespeak.protocol.address import split_url
from bespeak.text.reading.settings import setting

CATEGORIES: Final = (
    *("productivity", "ecommerce", "finance", "news", "weather", "maps", "search", "data", "communication"),
    *("calendar", "storage", "media", "health", "education", "travel", "food", "government", "developer"),
)

EVERYBODY: Final = "*"  # origin that allows pages of all sites

_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_VISIBLE: Final = re.compile(r"[!-~]{1,2000}")  # every document repeats a URL; some have 64,000 bytes at most
_PORTS: Final = {"http": 80, "https": 443}


def _split(text: str) -> SplitResult | None:
    """Split an http or https URL; None if it is invalid or holds credentials."""
    if _VISIBLE.fullmatch(text) is None:
        return None
    try:
        parts = split_url(text)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _parse_own_url(text: str) -> str | None:
    # Paths of endpoints are appended to the service's own URL, so its path must come last.
    return None if _split(text) is None or "?" in text or "#" in text else text.rstrip("/")


def _parse_origin(text: str) -> str | None:
    """Write an origin as browsers do; in any other form it would never match."""
    if text == EVERYBODY:
        return text
    parts = _split(text)
    if parts is None or EVERYBODY in text or parts.path not in ("", "/") or parts.query or parts.fragment:
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _parse_network(text: str) -> str | None:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return None
    return text


_URL: Final[dict[str, Any]] = {
    "parse": lambda text: None if _split(text) is None else text,
    "form": "an http or https URL",
    "advice": "Write it like https://rooms.example.",
    "rule": WEB_ADDRESS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Settings for the appearance of the service on the web, and for the callers it accepts there."""

    url: str | None = setting(
        None,
        "The URL by which others reach the service. Without it: the address it listens on.",
        **{**_URL, "parse": _parse_own_url, "form": "an http or https URL without a query"},
    )
    category: tuple[str, ...] = setting((), "The categories of the service.", choices=CATEGORIES, rule=UNKNOWN_CATEGORY)
    language: tuple[str, ...] = setting(
        ("en",),
        "The languages of the service, as BCP 47 tags.",
        parse=lambda text: text if _LANGUAGE.fullmatch(text) else None,
        form="a BCP 47 tag",
        advice="Write it like en or de-CH.",
        rule=LANGUAGE_TAG,
    )
    auth_docs: str | None = setting(None, "The page that explains authentication.", **_URL)
    changelog: str | None = setting(None, "The page that lists changes.", **_URL)
    status_page: str | None = setting(None, "The page that shows whether the service works.", **_URL)
    agent_tier: bool | None = setting(None, "Agents may request a higher rate.", kind="boolean")
    docs: bool = setting(True, "Show the contract to browsers, at `/` and `/docs`.")
    ai_alias: bool = setting(False, "Serve `/.well-known/ai` at `/ai` too.")
    cors: tuple[str, ...] = setting(
        (),
        'Origins whose pages may call; `"*"` for all.',
        parse=_parse_origin,
        form="an origin",
        advice='Write scheme and host like https://desk.example, without a path; or "*" for pages of all sites.',
        rule=WEB_ADDRESS,
        security=True,
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses and networks of proxies whose `X-Forwarded-For` is trusted.",
        parse=_parse_network,
        form="an IP address or network",
        advice="Write addresses like 10.0.0.7 or networks like 10.0.0.0/8, of the proxies only.",
        rule=PROXY_ADDRESS,
        security=True,
    )
    related_services: tuple[str, ...] = setting((), "Related services (AGIS 11.1).")

    @property
    def prefix(self) -> str:
        """Path under which the service is mounted, without a trailing slash."""
        return urlsplit(self.url).path.rstrip("/") if self.url else ""
