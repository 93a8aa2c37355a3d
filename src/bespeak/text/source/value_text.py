"""Values as text on one line: YAML scalars that all parsers read alike, YAML values and TOML values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z_/$](?:[A-Za-z0-9_./$(){}\[\]<>=+*~^!?;&|%@'\",-]| (?! |#|$)|:(?! |$))*+")
"""Text that needs no quotes in a block: it starts with a letter or a slash and has no special characters."""
_PLAIN_IN_LIST: Final = re.compile(r"[A-Za-z_/$](?:[A-Za-z0-9_./$()<>=+*~^!?;&|%@'-]| (?! |#|$))*+")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that some version of YAML does not read as text."""
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_JOINERS: Final = frozenset("\u200c\u200d")  # joiners: not printable, but several scripts need them


def text_scalar(text: str, *, in_list: bool = False) -> str:
    return text if is_plain(text, in_list=in_list) else quoted(text)


def is_plain(text: str, *, in_list: bool) -> bool:
    """Return True if every parser reads the text unquoted, in a block or between brackets."""
    pattern = _PLAIN_IN_LIST if in_list else _PLAIN
    return pattern.fullmatch(text) is not None and text.lower() not in _WORDS


def quoted(text: str) -> str:
    """Quote text with double quotes. Invisible characters and terminal controls are escaped."""
    if is_clean(text) and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(char) or (char if is_clean(char) else _numbered(char)) for char in text) + '"'


def number_scalar(number: float) -> str:
    """Format a number in decimal notation; one with more than about twenty digits keeps its exponent."""
    if isinstance(number, int):
        return str(number)
    written = repr(number)
    if "e" not in written:
        return written
    if 1e-15 < abs(number) < 1e21:
        plain = format(Decimal(written), "f")
        return plain if "." in plain else f"{plain}.0"
    mantissa, _, exponent = written.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"


def is_clean(text: str) -> bool:
    return text.isprintable() or all(char.isprintable() or char in _JOINERS for char in text)


def _numbered(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


_HIDDEN: Final = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
LONGEST_KEY: Final = 1000  # limit of a key's length: YAML requires the colon within 1024 characters


def string_text(text: str, *, style: str = "", flow: bool = False) -> str:
    """Format text in a style: plain (an empty style) or single quotes if possible, else double quotes."""
    if not style and is_plain(text, in_list=flow):
        return text
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def expressible(write: Callable[[], str]) -> str | None:
    """Return what a function writes; None if its notation or UTF-8 cannot express the value."""
    try:
        written = write()
        written.encode()
    except (ValueError, TypeError, RecursionError):
        return None
    return written


def yaml_value(value: Any, *, style: str = "", flow: bool = False) -> str | None:
    """Format a value, with lists and mappings in brackets; return None if YAML and JSON cannot both express it."""
    return expressible(lambda: _write(value, style, flow=flow))


def yaml_key(key: str, *, style: str = "", flow: bool = False) -> str | None:
    if len(key) > LONGEST_KEY:
        return None
    written = yaml_value(key, style=style, flow=flow)
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
    written = yaml_key(key, flow=True) if isinstance(key, str) else None
    if written is None:
        raise ValueError(key)
    return written


_BARE: Final = re.compile(r"[A-Za-z0-9_-]++")  # a key that TOML reads without quotes


def toml_value(value: Any, *, literal: bool = False) -> str | None:
    """Format a value, with text in single quotes if `literal` and possible; return None if TOML cannot express it."""
    return expressible(lambda: _write_toml(value, literal=literal))


def toml_key(key: str) -> str | None:
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_entries(table: Mapping[str, Any], width: int) -> Iterator[tuple[str, str, str | None]]:
    """Yield each key, the key as text and its value as text; None for a nested table, or one longer than `width`."""
    for key, value in table.items():
        written, text = toml_key(key), None
        is_table = isinstance(value, Mapping)
        if not is_table or (len(value) <= 6 and not any(isinstance(item, Mapping) and item for item in value.values())):
            text = toml_value(value)
            assert text is not None
        assert written is not None
        yield key, written, None if is_table and text is not None and len(text) > width else text


def _write_toml(value: Any, *, literal: bool = False) -> str:
    if isinstance(value, str):
        if literal and value.isprintable() and "'" not in value:
            return f"'{value}'"
        return encode_basestring(value).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write_toml, value))}]"
    if isinstance(value, Mapping):
        keys = (key if _BARE.fullmatch(key) else _write_toml(key) for key in value)
        inside = ", ".join(f"{key} = {_write_toml(item)}" for key, item in zip(keys, value.values(), strict=True))
        return f"{{ {inside} }}" if inside else "{}"
    if not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise TypeError(value)
    return number_scalar(value)
