"""Cursors: where a page ended. They are neither secret nor signed, since they cannot widen what the filters give."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.data_set import DataColumn
from bespeak.errors import DataSourceError
from bespeak.runtime.data.query import DataQuery
from bespeak.runtime.data.value import from_position

LONGEST: Final = 4096
"""Maximum length of a cursor in characters."""
_MOST_SKIPPED: Final = 1_000_000


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    query: str
    after: list[bool | int | float | str | None]
    skip: int | None = None


def write_cursor(query: DataQuery, after: Sequence[Any], skip: int | None) -> str:
    """Write the cursor of the page that follows."""
    text = msgspec.json.encode(_Cursor(_digest(query), list(after), skip))
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def read_cursor(text: str, query: DataQuery, columns: Sequence[DataColumn]) -> tuple[tuple[Any, ...], int | None] | str:
    """Return the position and the rows to skip, or what is wrong. `columns` are those of the query's order."""
    try:
        cursor = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Cursor)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return "the cursor is not one of this endpoint"
    if cursor.query != _digest(query):
        return "the cursor belongs to another query: keep filters and order between pages"
    if len(cursor.after) != len(columns) or (cursor.skip is None) is not (query.skip is None):
        return "the cursor is not one of this endpoint"
    if cursor.skip is not None and not 0 <= cursor.skip <= _MOST_SKIPPED:
        return "the cursor is not one of this endpoint"
    try:
        return tuple(map(from_position, columns, cursor.after)), cursor.skip
    except DataSourceError:
        return "the cursor is not one of this endpoint"


def _digest(query: DataQuery) -> str:
    asked = [[(one.column, one.op, one.value) for one in query.filters], query.order]
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:12]
