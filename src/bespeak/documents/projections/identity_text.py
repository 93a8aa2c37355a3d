"""The representations of an identity document: JSON, YAML and a page for people (core 4.3, 5.1)."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.headers import MEDIA_IDENTITY, MEDIA_JSON

MEDIA_IDENTITY_YAML: Final = "application/vnd.agtp.identity+yaml"
MEDIA_HTML: Final = "text/html"
IDENTITY_TYPES: Final = (
    *(MEDIA_IDENTITY, MEDIA_JSON, MEDIA_IDENTITY_YAML),
    *("application/yaml", "application/x-yaml", "text/yaml", MEDIA_HTML),
)
"""Media types on offer, in order of preference."""


def write_identity(document: Mapping[str, Any], media_type: str) -> tuple[bytes, str]:
    """Write a document in one of the offered types; return the text and its content type."""
    if media_type == MEDIA_HTML:
        return _page(document).encode(), f"{MEDIA_HTML}; charset=utf-8"
    if media_type.endswith("yaml"):
        import yaml  # noqa: PLC0415 - slow to load, for those who ask for it

        return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True).encode(), media_type
    return msgspec.json.format(msgspec.json.encode(document), indent=2), MEDIA_IDENTITY


def _page(document: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(_shown(value))}</td></tr>"
        for name, value in document.items()
    )
    title = html.escape(str(document.get("name") or document.get("agent_id")))
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n<table>\n{rows}\n</table>\n</body>\n</html>\n"
    )


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
