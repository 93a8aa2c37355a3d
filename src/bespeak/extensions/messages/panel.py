"""The panel of deliveries: what waits to be sent."""

from __future__ import annotations

from bespeak.extensions.messages.store import CountOutbox
from bespeak.runtime.panels import Block, PanelRequest, TableBlock, TableRow, cells, written


async def show(request: PanelRequest) -> list[Block]:
    found = await request.store.read(CountOutbox())
    rows = [
        TableRow(one.topic, cells(one.topic, one.waiting, one.due, one.attempts, written(one.oldest))) for one in found
    ]
    columns = ("Topic", "Waiting", "Due now", "Most attempts", "Oldest since")
    return [TableBlock("Outbox", columns, rows, empty="Everything is sent.", command="bespeak store show")]
