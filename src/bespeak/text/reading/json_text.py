"""Parses JSON text into a table. Errors have a place; keys do not."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import Any, Final

import msgspec

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.rules import MALFORMED, WRONG_VALUE
from bespeak.text.reading.table import Table, kind
from bespeak.text.source.span import Location

_BYTE: Final = re.compile(r" \(byte (\d+)\)$")


def json_table(data: bytes, file: str, *, tolerant: bool = False, repeats: bool = False) -> Table | Diagnostic:
    """Parse the root object of a JSON text, or return the error.

    With `repeats`, the last of repeated keys counts; the caller reports them.
    """
    if tolerant:  # RFC 8259 8.1: readers may ignore a byte order mark, which writers must not add
        data = data.removeprefix(BOM_UTF8)
    value = json_value(data, file, repeats=repeats)
    if isinstance(value, Diagnostic):
        return value
    if not isinstance(value, dict):
        return WRONG_VALUE.found(f"the document is {kind(value)}, not an object", Location(file))
    return Table(value, "", Findings(lambda _: Location(file), tolerant=tolerant))


def json_value(data: bytes, file: str, *, repeats: bool = False) -> Any | Diagnostic:
    """Parse any JSON value, or return the error with its place."""
    try:
        return msgspec.json.decode(data) if repeats else decode_json(data)
    except RecursionError:
        return _fault("it is nested too deeply", Location(file))
    except ValueError as error:  # msgspec's errors, and text that is not UTF-8
        message = str(error)
        place = _BYTE.search(message)
        if place is None:
            return _fault(message, Location(file))
        return _fault(message[: place.start()], _location(data, int(place[1]), file))


def _fault(reason: str, location: Location) -> Diagnostic:
    return MALFORMED.found(f"this is not JSON: {reason}", location)


def _location(data: bytes, offset: int, file: str) -> Location:
    before = data[:offset]
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    return Location(file, before.count(b"\n") + 1, column)
