"""JSON text to plain data or a table, fast. A repeated key is refused: readers could differ about its value."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from typing import Any, Final, TypeVar

import msgspec

from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.rules import MALFORMED, WRONG_VALUE
from bespeak.text.reading.table import Findings, Table, kind
from bespeak.text.source.json_tree import find_repeated
from bespeak.text.source.tree import Location, Span

_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\r\n]*+(:?)')  # strings; one with a colon is a key
_PLACED: Final = 64 * 1024  # maximum characters of a text in which a repeated key is located
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
    value = decoder.decode(data)
    check_keys(data, _decode(data))
    return value


def check_keys(data: bytes | bytearray, value: Any) -> None:
    """Raise RepeatedKeyError if an object has a key twice: then the text has more keys than its value."""
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


_BYTE: Final = re.compile(r" \(byte (\d+)\)$")


def json_table(data: bytes, file: str, *, tolerant: bool = False, repeats: bool = False) -> Table | Diagnostic:
    """Parse a JSON object, or return the error. With `repeats`, the last of repeated keys counts."""
    if tolerant:  # RFC 8259 8.1: readers may ignore a byte order mark, which writers must not add
        data = data.removeprefix(BOM_UTF8)
    value = json_value(data, file, repeats=repeats)
    if isinstance(value, Diagnostic):
        return value
    if not isinstance(value, dict):
        return WRONG_VALUE.found(f"the document is {kind(value)}, not an object", Location(file))
    return Table(value, "", Findings(lambda _: Location(file), tolerant=tolerant))


def json_value(data: bytes, file: str, *, repeats: bool = False) -> Any | Diagnostic:
    try:
        return msgspec.json.decode(data) if repeats else decode_json(data)
    except RecursionError:
        return _fault("it is nested too deeply", Location(file))
    except ValueError as error:  # msgspec's errors, and text that is not UTF-8
        message = str(error)
        if (place := _BYTE.search(message)) is None:
            return _fault(message, Location(file))
        return _fault(message[: place.start()], _location(data, int(place[1]), file))


def _fault(reason: str, location: Location) -> Diagnostic:
    return MALFORMED.found(f"this is not JSON: {reason}", location)


def _location(data: bytes, offset: int, file: str) -> Location:
    before = data[:offset]
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    return Location(file, before.count(b"\n") + 1, column)
