"""The plain part of TOML that nearly all configuration keeps to, read several times faster than `tomllib` reads it.

Ten thousand endpoint files must load in the time a server may take to start. A line is a header of bare keys or a bare
key with a value that ends on the line; a text with anything else, or with anything that might be a mistake, is left to
`tomllib`, which knows all of TOML and says what is wrong. What this module reads, it reads as `tomllib` would.
"""

from __future__ import annotations

import re
from typing import Any, Final

# TOML 1.0: basic-unescaped and literal-char leave out quotes, backslashes and control characters other than tab.
_CONTROL: Final = r"\x00-\x08\x0a-\x1f\x7f"
_NUMBER_OR_BOOLEAN: Final = r"true|false|-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?+"
_SCALAR: Final = rf""" "[^"\\{_CONTROL}]*+"|'[^'{_CONTROL}]*+'|{_NUMBER_OR_BOOLEAN}""".strip()
_ARRAY: Final = rf"\[[ \t]*+(?:(?:{_SCALAR})[ \t]*+(?:,[ \t]*+|(?=\])))*+\]"
_KEY: Final = r"[A-Za-z0-9_-]++"
_FLAT: Final = rf"(?:{_SCALAR}|{_ARRAY})"
_TABLE: Final = rf"\{{[ \t]*+(?:{_KEY}[ \t]*+=[ \t]*+{_FLAT}[ \t]*+(?:,[ \t]*+(?!\}})|(?=\}})))*+\}}"
_PATH: Final = rf"{_KEY}(?:\.{_KEY})*+"

_LINE: Final = re.compile(
    rf"""[ \t]*+(?:
        ({_KEY})[ \t]*+=[ \t]*+ (?: "([^"\\{_CONTROL}]*+)" | ({_SCALAR}|{_ARRAY}|{_TABLE}) )
      | \[({_PATH})\]
      | \[\[({_PATH})\]\]
    )?+[ \t]*+(?:\#[^{_CONTROL}]*+)?+""",
    re.VERBOSE,
)
_STRING, _OTHER, _HEADER, _ARRAY_HEADER = 2, 3, 4, 5
_SCALARS: Final = re.compile(_SCALAR)
_PAIRS: Final = re.compile(rf"({_KEY})[ \t]*+=[ \t]*+({_FLAT})")
_MOST_TABLES: Final = 64
"""More headers than a person writes are left to tomllib; here each costs time at the next `[[header]]`."""


def read_plain(text: str) -> dict[str, Any] | None:
    """The data of a TOML text, or None when it is for `tomllib` to read. Lines end in a bare newline."""
    root: dict[str, Any] = {}
    table = root
    made = {"": root}  # tables that stand as headers, or above one; of an array of tables, the newest
    match = _LINE.fullmatch
    for line in text.split("\n"):
        if not line:
            continue
        parts = match(line)
        if parts is None:
            return None
        kind = parts.lastindex
        if kind in (_STRING, _OTHER):
            key = parts[1]
            if key in table:
                return None
            value = parts[2] if kind == _STRING else _value(parts[3])
            if value is None:
                return None
            table[key] = value
        elif kind is not None:
            opened = _open(made, parts[kind], array=kind == _ARRAY_HEADER)
            if opened is None or len(made) > _MOST_TABLES:
                return None
            table = opened
    return root


def _open(made: dict[str, dict[str, Any]], name: str, *, array: bool) -> dict[str, Any] | None:
    """The table a header opens. None for a second header of one table, which may be a mistake."""
    above, _, key = name.rpartition(".")
    parent = made.get(above)
    if parent is None:
        parent = _open(made, above, array=False) if name.count(".") < 16 else None
        if parent is None:
            return None
    table: dict[str, Any] = {}
    if not array:
        if key in parent:
            return None
        parent[key] = table
    elif key not in parent:
        parent[key] = [table]
    elif name in made and isinstance(parent[key], list):
        parent[key].append(table)
        for below in [other for other in made if other.startswith(f"{name}.")]:
            del made[below]
    else:
        return None
    made[name] = table
    return table


def _value(text: str) -> Any:
    first = text[0]
    if first in "\"'":
        return text[1:-1]
    if first == "[":
        return [_scalar(item) for item in _SCALARS.findall(text)]
    if first == "{":
        pairs = _PAIRS.findall(text)
        table = {key: _value(value) for key, value in pairs}
        return table if len(table) == len(pairs) else None
    return _scalar(text)


def _scalar(text: str) -> Any:
    if text[0] in "\"'":
        return text[1:-1]
    if text == "true":
        return True
    if text == "false":
        return False
    return float(text) if "." in text else int(text)
