"""Fingerprint of a finding, stable when lines move or endpoints are reordered."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.pointer import unescaped

_LENGTH: Final = 20
_PLACE: Final = re.compile(r":[0-9]+(?::[0-9]+)?")
_NAMES: Final = ("name", "id", "key", "verb", "from_method")
"""Keys whose value identifies an item of a list."""


def fingerprint(finding: Diagnostic, file: str, data: Any) -> str:
    """Compute the fingerprint of a finding from the path of its file, relative to the project, and the file's data."""
    from hashlib import sha256  # noqa: PLC0415 - brings OpenSSL, and many runs find nothing

    said = _PLACE.sub("", " ".join(finding.message.split()))
    parts = (finding.rule, file, stable_pointer(finding.pointer, data), said)
    return sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:_LENGTH]


def stable_pointer(pointer: str, data: Any) -> str:
    """Replace the indexes in a pointer by the names of the items."""
    here = data
    parts: list[str] = []
    for part in pointer.split("/")[1:]:
        if isinstance(here, list):
            here = here[int(part)] if part.isdecimal() and len(part) < 10 and int(part) < len(here) else None
            parts.append(_identity(here) or part)
        else:
            key = unescaped(part)
            here = here.get(key) if isinstance(here, dict) else None
            parts.append(part)
    return "/".join(("", *parts)) if parts else ""


def _identity(item: Any) -> str:
    if isinstance(item, str):
        return f"[{item[:200]}]"
    if not isinstance(item, dict):
        return ""
    method, path = item.get("method"), item.get("path")
    if isinstance(method, str) and isinstance(path, str):
        return f"[{method} {path}]"
    return next((f"[{item[key]}]" for key in _NAMES if isinstance(item.get(key), str)), "")
