"""Values as TOML on one line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any, Final

from bespeak.text.source.yaml_scalar import number_scalar

_BARE: Final = re.compile(r"[A-Za-z0-9_-]++")


def value_text(value: Any, *, literal: bool = False) -> str | None:
    """Format a value, with text in single quotes if `literal` and possible; return None if TOML cannot express it."""
    try:
        written = _write(value, literal=literal)
        written.encode()
    except (ValueError, TypeError, RecursionError):
        return None
    return written


def key_text(key: str) -> str | None:
    """Format a key, in quotes if necessary; return None if TOML cannot express it."""
    return key if _BARE.fullmatch(key) else value_text(key)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _write(key)


def _write(value: Any, *, literal: bool = False) -> str:
    if isinstance(value, str):
        if literal and value.isprintable() and "'" not in value:
            return f"'{value}'"
        return encode_basestring(value).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write, value))}]"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_write(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise TypeError(value)
    return number_scalar(value)
