"""Values as HTTP writes them: in a path, a header or a cookie, or as the pairs of a query and a form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.contract.schema.violation import Violation
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.text.diagnostics.brief import brief
from bespeak.text.source.pointer import child

DEEPEST: Final = 8
"""Levels of `a[b][c]=1`; what lies below is written as JSON text."""

MAX_HEADER: Final = 8 * 1024
"""Characters of a header that an input fills; most servers take no more."""

_SIGNS: Final = {"comma": ",", "space": " ", "pipe": "|"}
_COOKIE_SAFE: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"
"""What a cookie may hold as it is (RFC 6265 4.1.1), without the sign that marks the rest as encoded."""


def as_text(value: Any) -> str:
    """One value: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def joined(value: Any, sign: str, at: str, faults: list[Violation]) -> str:
    """The items of a list, or the names and values of an object, with a sign between them; one value as it is.

    An item that holds the sign would be two for the server, and past every check of the contract.
    """
    if isinstance(value, dict):
        parts = [(child(at, name), part) for name, item in value.items() if item is not None for part in (name, item)]
    elif isinstance(value, list):
        parts = [(child(at, index), item) for index, item in enumerate(value) if item is not None]
    else:
        return as_text(value)
    texts = [as_text(part) for _, part in parts]
    for (where, _), text in zip(parts, texts, strict=True):
        if sign in text:
            faults.append(unusable(where, f"{brief(text)} holds {sign!r}, which separates items"))
    return sign.join(texts)


def in_path(value: Any, at: str, faults: list[Violation]) -> str:
    """A value as a part of a path."""
    text = joined(value, ",", at, faults)
    # Servers resolve dot segments, also encoded ones: such a value would choose another resource.
    if value is None or text in ("", ".", ".."):
        faults.append(unusable(at, f"{text!r} cannot stand in a path"))
    return quote(text, safe="")


def in_header(value: Any, at: str, faults: list[Violation]) -> str:
    """A value as a header; nothing if none can hold it."""
    text = joined(value, ",", at, faults)
    # Blanks at the ends of a header are nobody's, and would be lost.
    readable = is_header_value(text) and text == text.strip(" \t") and all(character <= "\xff" for character in text)
    if not readable or len(text) > MAX_HEADER:
        faults.append(unusable(at, f"{brief(text)} cannot stand in a header"))
        return ""
    return text


def in_cookie(value: Any, at: str, faults: list[Violation]) -> str:
    """A value as that of a cookie."""
    return quote(joined(value, ",", at, faults), safe=_COOKIE_SAFE)


def pairs(name: str, value: Any, style: str, at: str, faults: list[Violation]) -> Iterator[tuple[str, str]]:
    """The names and encoded values of one field in a query or a form. What is null, or has no items, is left out.

    A space is %20: where forms are read a plus would do, too, but RFC 3986 knows none.
    """
    if value is None:
        return
    if style in _SIGNS and isinstance(value, list | dict):
        if value:
            sign = _SIGNS[style]
            # The comma stays as it is for upstreams that split first; space and pipe have no place in a URL.
            yield name, quote(joined(value, sign, at, faults), safe="," if sign == "," else "")
    elif style == "deep" and isinstance(value, list | dict):
        yield from _deep(name, value, at, faults, 1)
    elif style != "json" and isinstance(value, list):
        yield from ((name, quote(as_text(item), safe="")) for item in value if item is not None)
    else:
        yield name, quote(as_text(value), safe="")


def _deep(
    name: str, value: list[Any] | dict[str, Any], at: str, faults: list[Violation], depth: int
) -> Iterator[tuple[str, str]]:
    """`a[b]=1` for objects, `a[]=1` for lists, and `a[0][b]=1` for lists of what has parts itself."""
    numbered = isinstance(value, list) and any(isinstance(item, list | dict) for item in value)
    items = enumerate(value) if isinstance(value, list) else value.items()
    for key, item in items:
        if item is None:
            continue
        below = child(at, key)
        if isinstance(key, str) and ("[" in key or "]" in key):
            faults.append(unusable(below, f"the name {brief(key)} holds a bracket, which begins another level"))
        inner = f"{name}[{key if numbered or isinstance(value, dict) else ''}]"
        if isinstance(item, list | dict) and depth < DEEPEST:
            yield from _deep(inner, item, below, faults, depth + 1)
        else:
            yield inner, quote(as_text(item), safe="")


def encode_pairs(encoded: Iterable[tuple[str, str]]) -> str:
    """Pairs whose values are encoded already, as one text."""
    return "&".join(f"{quote(name, safe='')}={value}" for name, value in encoded)


def unusable(at: str, fault: str) -> Violation:
    """A value that the contract admits and HTTP cannot carry."""
    return Violation(at, "", "http", fault)
