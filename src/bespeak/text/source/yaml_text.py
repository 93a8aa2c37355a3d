"""Values as YAML on one line: plain where all parsers agree, else in quotes."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from bespeak.text.source.yaml_scalar import is_plain

_HIDDEN: Final = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
LONGEST_KEY: Final = 1000
"""Limit of a key's length: YAML requires the colon within 1024 characters."""


def string_text(text: str, *, style: str = "", flow: bool = False) -> str:
    """Format text in a style: plain (an empty style) or single quotes if possible, else double quotes."""
    if not style and is_plain(text, in_list=flow):
        return text
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    written = json.dumps(text, ensure_ascii=False)
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def value_text(value: Any, *, style: str = "", flow: bool = False) -> str | None:
    """Format a value, with lists and mappings in brackets; return None if YAML and JSON cannot both express it."""
    try:
        written = _write(value, style, flow=flow)
        written.encode()
    except (ValueError, TypeError, RecursionError):
        return None
    return written


def key_text(key: str, *, style: str = "", flow: bool = False) -> str | None:
    """Format a key; return None if it is too long for YAML."""
    if len(key) > LONGEST_KEY:
        return None
    written = value_text(key, style=style, flow=flow)
    return written if written is not None and len(written) <= LONGEST_KEY else None


def _write(value: Any, style: str, *, flow: bool) -> str:
    if isinstance(value, str):
        return string_text(value, style=style, flow=flow)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_write(item, "", flow=True) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_write(item, '', flow=True)}" for key, item in value.items()) + "}"
    return json.dumps(value, allow_nan=False)


def _key(key: Any) -> str:
    written = key_text(key, flow=True) if isinstance(key, str) else None
    if written is None:
        raise ValueError(key)
    return written
