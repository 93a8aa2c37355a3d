"""SCAN: reads rows of collections (Tier 2 3)."""

from __future__ import annotations

from typing import Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.data.collection import find_collection, read_cursor, read_filters, write_cursor
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import handler

_PAGE: Final = 100
_SCAN: Final = STANDARD["SCAN"]


@handler
async def scan(call: RoutedCall) -> Envelope:
    """Answer SCAN /. The position of the last row is in the cursor, so that no state is kept between pages."""
    given = call.input
    collection = await find_collection(call, _SCAN, given["collection"], "collection")
    filters = read_filters(given.get("filter", {}), "filter")
    collection.check(filters, (), "filter")
    about = [collection.kind, collection.name, given.get("filter")]
    after = read_cursor(call, _SCAN, about, given["cursor"]) if "cursor" in given else None
    rows, position = await collection.scan(after, given.get("page_size", _PAGE), filters)
    page = {"collection": collection.name, "items": rows, "count": len(rows)}
    return Envelope(page if position is None else {**page, "cursor": write_cursor(call, about, position)})
