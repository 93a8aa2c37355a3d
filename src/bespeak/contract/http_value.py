"""Values on HTTP: in a path, a header or a cookie, or as the pairs of a query or form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from bespeak.contract.schema.validation import Violation
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import child

DEEPEST: Final = 8  # limit of levels in `a[b][c]=1`; deeper values are written as JSON text
MAX_HEADER: Final = 8 * 1024  # limit of a header filled from the input, in characters; most servers accept no more
_SIGNS: Final = {"comma": ",", "space": " ", "pipe": "|"}
_RESERVED: Final = ":/?@!$'()*,;"  # reserved characters (RFC 3986 2.2) without meaning in a query or form
_DECODINGS: Final = 4  # how often a value may be percent-encoded; more can only be an attempt to hide something
_UNSAFE: Final = re.compile(r"[/\\\x00-\x1f\x7f]")
_COOKIE_SAFE: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"  # characters allowed in a cookie (RFC 6265 4.1.1)


def as_text(value: Any) -> str:
    """Convert one value to text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def joined(value: Any, sign: str, at: str, faults: list[Violation]) -> str:
    """Join items with a separator. An item that contains it is refused: it would become two, past every check."""
    if isinstance(value, dict):
        parts = [(child(at, name), part) for name, item in value.items() if item is not None for part in (name, item)]
    elif isinstance(value, list):
        parts = [(child(at, index), item) for index, item in enumerate(value) if item is not None]
    else:
        return as_text(value)
    texts = [as_text(part) for _, part in parts]
    for (where, _), text in zip(parts, texts, strict=True):
        if sign in text:
            faults.append(unusable(where, f"{brief(text)} contains {sign!r}, which separates items"))
    return sign.join(texts)


def in_path(value: Any, at: str, faults: list[Violation]) -> str:
    """Encode a value as one segment of a path, or a part of it; refuse one that could choose another resource."""
    text = joined(value, ",", at, faults)
    if value is None or leaves_segment(text):
        faults.append(unusable(at, f"{brief(text)} is not allowed in a path: it could lead to another resource"))
    return quote(text, safe="")


def in_url_query(value: Any, at: str, faults: list[Violation]) -> str:
    if value is None:
        faults.append(unusable(at, "null is not allowed in a URL"))
    return quote(joined(value, ",", at, faults), safe="")


def leaves_segment(text: str) -> bool:
    """Return True if a server could read a value as something other than one segment of a path.

    Servers and proxies decode a path before they resolve it, some of them twice, and treat a backslash as a slash. Some
    drop what follows a semicolon, or spaces, or map wide characters to ASCII. Encoding alone does not prevent that.
    """
    for _ in range(_DECODINGS):
        plain = unicodedata.normalize("NFKC", text)
        if plain.partition(";")[0].strip() in ("", ".", "..") or _UNSAFE.search(plain):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return True


def in_header(value: Any, at: str, faults: list[Violation]) -> str:
    """Encode a value as a header; return None if a header cannot hold it."""
    text = joined(value, ",", at, faults)
    # Spaces at the ends of a header value would be lost.
    readable = is_header_value(text) and text == text.strip(" \t") and all(character <= "\xff" for character in text)
    if not readable or len(text) > MAX_HEADER:
        faults.append(unusable(at, f"{brief(text)} is not allowed in a header"))
        return ""
    return text


def in_cookie(value: Any, at: str, faults: list[Violation]) -> str:
    return quote(joined(value, ",", at, faults), safe=_COOKIE_SAFE)


def pairs(
    name: str, value: Any, style: str, at: str, faults: list[Violation], *, reserved: bool = False
) -> Iterator[tuple[str, str]]:
    """Return the names and encoded values of one field in a query or form. Null and empty values are omitted.

    A space becomes %20: forms also read a plus as a space, but RFC 3986 does not. With `reserved`, reserved characters
    stay as they are, except those that separate pairs.
    """
    # The comma stays as it is for upstreams that split first; space and pipe have no place in a URL.
    safe = _RESERVED if reserved else "," if style == "comma" and isinstance(value, list | dict) else ""
    return ((key, quote(text, safe=safe)) for key, text in texts(name, value, style, at, faults))


def texts(name: str, value: Any, style: str, at: str, faults: list[Violation]) -> Iterator[tuple[str, str]]:
    """Return the names and values of one field that is written in a style. Null and empty values are omitted."""
    if value is None:
        return
    if style in _SIGNS and isinstance(value, list | dict):
        if value:
            yield name, joined(value, _SIGNS[style], at, faults)
    elif style == "deep" and isinstance(value, list | dict):
        yield from _deep(name, value, at, faults, 1)
    elif style != "json" and isinstance(value, list):
        yield from ((name, as_text(item)) for item in value if item is not None)
    else:
        yield name, as_text(value)


def _deep(
    name: str, value: list[Any] | dict[str, Any], at: str, faults: list[Violation], depth: int
) -> Iterator[tuple[str, str]]:
    """Write `a[b]=1` for objects, `a[]=1` for lists, and `a[0][b]=1` for lists of collections."""
    numbered = isinstance(value, list) and any(isinstance(item, list | dict) for item in value)
    items = enumerate(value) if isinstance(value, list) else value.items()
    for key, item in items:
        if item is None:
            continue
        below = child(at, key)
        if isinstance(key, str) and ("[" in key or "]" in key):
            faults.append(unusable(below, f"the name {brief(key)} contains a bracket, which starts another level"))
        elif key == "":
            faults.append(unusable(below, "an empty name is not allowed: [] adds to a list"))
        inner = f"{name}[{key if numbered or isinstance(value, dict) else ''}]"
        if isinstance(item, list | dict) and depth < DEEPEST:
            yield from _deep(inner, item, below, faults, depth + 1)
        else:
            yield inner, as_text(item)


def encode_pairs(encoded: Iterable[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={value}" for name, value in encoded)


def unusable(at: str, fault: str) -> Violation:
    """Return the violation for a value that the contract allows but HTTP cannot carry."""
    return Violation(at, "", "http", fault)
