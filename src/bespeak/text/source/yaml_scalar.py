"""Texts and numbers as YAML writes them, so that readers of YAML 1.1 and 1.2 and of JSON get the same values."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_/$](?:[A-Za-z0-9_./$(){}\[\]<>=+*~^!?;&|%@'\",-]| (?! |#|$)|:(?! |$))*+")
"""Texts that need no quotes in a block: they start with a letter or a slash, and no mark in them means anything."""
_PLAIN_IN_LIST: Final = re.compile(r"[A-Za-z_/$](?:[A-Za-z0-9_./$()<>=+*~^!?;&|%@'-]| (?! |#|$))*+")

_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""What is, in some YAML or other, no text."""

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_JOINERS: Final = frozenset("\u200c\u200d")
"""Not printable, yet letters of several scripts are written with them."""


def text_scalar(text: str, *, in_list: bool = False) -> str:
    """A text on one line, in double quotes where it needs them."""
    return text if is_plain(text, in_list=in_list) else quoted(text)


def is_plain(text: str, *, in_list: bool) -> bool:
    """Whether every reader takes a text for one that has no quotes, in a block or between brackets."""
    pattern = _PLAIN_IN_LIST if in_list else _PLAIN
    return pattern.fullmatch(text) is not None and text.lower() not in _WORDS


def quoted(text: str) -> str:
    """A text in double quotes. What could not be seen, or would steer a terminal, is written as its number."""
    if is_clean(text) and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(char) or (char if is_clean(char) else _numbered(char)) for char in text) + '"'


def number_scalar(number: float) -> str:
    """A number in decimal notation; one with more than some twenty digits keeps its exponent."""
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
    """Whether a reader sees every character of a text."""
    return text.isprintable() or all(char.isprintable() or char in _JOINERS for char in text)


def _numbered(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
