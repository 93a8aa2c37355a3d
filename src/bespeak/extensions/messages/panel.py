"""The panel of deliveries: what waits to be sent."""

from __future__ import annotations

from bespeak.extensions.messages.store import CountOutbox
from bespeak.terminal import panels


async def show(request: panels.PanelRequest) -> list[panels.Block]:
    found = await request.store.read(CountOutbox())
    rows = [
        panels.row(one.topic, one.topic, one.waiting, one.due, one.attempts, panels.written(one.oldest))
        for one in found
    ]
    columns = ("Topic", "Waiting", "Due now", "Most attempts", "Oldest since")
    return [panels.Table("Outbox", columns, rows, empty="Everything is sent.", command="bespeak store show")]
