"""Plain data as TOML that people read and edit: tables for what is large, one line for what is small."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.documents.yaml_scalar import number_scalar
from bespeak.source.pointer import child

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH: Final = 80
"""A table that is no longer than this stands on one line."""


def toml_text(data: Mapping[str, Any]) -> str:
    """A TOML document of data that has no null in it; `find_null` tells."""
    return "\n".join(_lines(data, ())).strip("\n") + "\n"


def find_null(data: Any, at: str = "") -> str | None:
    """Where data has a null, which TOML cannot say."""
    if data is None:
        return at
    parts = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    return next((found for key, value in parts if (found := find_null(value, child(at, key))) is not None), None)


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    large = {key: value for key, value in table.items() if isinstance(value, Mapping) and not _is_small(value)}
    if path and (len(large) < len(table) or not table):
        yield ""
        yield f"[{'.'.join(map(_key, path))}]"
    for key, value in table.items():
        if key not in large:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in large.items():
        yield from _lines(value, (*path, key))


def _is_small(value: Mapping[str, Any]) -> bool:
    if len(value) > 6 or any(isinstance(item, Mapping) and item for item in value.values()):
        return False
    return len(_value(value)) <= _WIDTH


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return number_scalar(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
