"""Plain data as TOML that people read and edit: tables for what is large, one line for what is small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.source.pointer import child
from bespeak.source.toml_value import key_text, value_text

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
    written = value_text(value)
    assert written is not None
    return written


def _key(key: str) -> str:
    written = key_text(key)
    assert written is not None
    return written
