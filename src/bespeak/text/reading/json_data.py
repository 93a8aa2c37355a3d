"""JSON text to plain data, fast. A repeated key is refused: two readers could take different values from it."""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeVar

import msgspec

from bespeak.text.diagnostics.brief import brief
from bespeak.text.source.json_places import find_repeated
from bespeak.text.source.tree import Span

_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\r\n]*+(:?)')
"""Strings of a valid JSON text, each with the colon after it: a string with a colon is a key."""
_PLACED: Final = 64 * 1024
"""Maximum characters of a text in which a repeated key is located."""

T = TypeVar("T")

_decode: Final = msgspec.json.Decoder().decode


class RepeatedKeyError(msgspec.DecodeError):
    """An object has a key twice."""


def decode_json(data: bytes | bytearray | str) -> Any:
    """Decode a JSON text. Raises msgspec.DecodeError, UnicodeError or RecursionError if it is not valid."""
    text = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    value = _decode(text)
    check_keys(text, value)
    return value


def decode_as(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Decode a JSON text to the type of a decoder, with the same errors."""
    value = decoder.decode(data)
    check_keys(data, _decode(data))
    return value


def check_keys(data: bytes | bytearray, value: Any) -> None:
    """Raise RepeatedKeyError if the text of a decoded value has a key twice in one object.

    The decoder keeps the last one, so the value has fewer keys than the text. Only a text that seems to have more keys
    than its value is examined string by string.
    """
    # The end of a key is a quote and a colon. Inside a string both stand together only if the quote is escaped.
    most = data.translate(None, b" \t\r\n").count(b'":')
    if (type(value) is dict and most == len(value)) or most == (keys := _count_keys(value)):
        return
    if _STRINGS.findall(data).count(b":") != keys:
        raise RepeatedKeyError(_explain(data.decode()))


def _count_keys(value: Any) -> int:
    """Count the keys of all objects. A loop with a stack: depth costs memory, not frames."""
    count, waiting = 0, [value]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            count += len(value)
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)
    return count


def _explain(text: str) -> str:
    """Name the repeated key, and its place if the text is short: finding that costs more than decoding."""
    if len(text) > _PLACED:
        try:
            json.loads(text, object_pairs_hook=_refuse_repeated, parse_int=len, parse_float=len)
        except RepeatedKeyError as error:
            return str(error)
    second, _ = find_repeated(text) or (Span(0, 0), None)
    place = len(text[: second.start].encode())
    return f"the key {brief(json.loads(text[second.start : second.end]))} is repeated in one object (byte {place})"


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise RepeatedKeyError(f"the key {brief(key)} is repeated in one object")
        seen.add(key)
