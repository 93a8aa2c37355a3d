"""Text and numbers as YAML scalars that parsers of YAML 1.1, YAML 1.2 and JSON read alike."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_/$](?:[A-Za-z0-9_./$(){}\[\]<>=+*~^!?;&|%@'\",-]| (?! |#|$)|:(?! |$))*+")
"""Text that needs no quotes in a block: it starts with a letter or a slash and has no special characters."""
_PLAIN_IN_LIST: Final = re.compile(r"[A-Za-z_/$](?:[A-Za-z0-9_./$()<>=+*~^!?;&|%@'-]| (?! |#|$))*+")

_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that some version of YAML does not read as text."""

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_JOINERS: Final = frozenset("\u200c\u200d")
"""Joiners: not printable, but several scripts need them."""


def text_scalar(text: str, *, in_list: bool = False) -> str:
    """Format text on one line, in double quotes if necessary."""
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
    """Return True if every character of a text is visible."""
    return text.isprintable() or all(char.isprintable() or char in _JOINERS for char in text)


def _numbered(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
