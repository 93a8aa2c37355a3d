"""The panel of queues: how many items each has by state, what failed for good, and another attempt for it."""

from __future__ import annotations

from bespeak.extensions.queues.store import (
    CANCELLED,
    DEAD,
    DONE,
    QUEUED,
    RUNNING,
    SUBMISSION,
    CountItems,
    ListItems,
    read_item,
    retry_item,
)
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.store import Conflict
from bespeak.terminal import panels
from bespeak.terminal.panels import cells

_STATES = (QUEUED, RUNNING, DEAD, DONE, CANCELLED)


async def show(request: panels.PanelRequest) -> list[panels.Block]:
    counted: dict[str, dict[str, int]] = {}
    for one in await request.store.read(CountItems()):
        counted.setdefault(one.queue, {})[one.state] = one.count
    rows = [
        panels.row(name, name, *(states.get(state, 0) for state in _STATES), actions=(panels.SHOW,))
        for name, states in list(counted.items())[: panels.MOST_ROWS]
    ]
    columns = ("Queue", "Queued", "Running", "Dead", "Done", "Cancelled")
    actions = {panels.SHOW: panels.Action("Show the dead", command="bespeak queues show KEY")}
    return [
        panels.Table("Queues", columns, rows, actions, empty="No queue has an item.", command="bespeak queues list")
    ]


async def show_one(request: panels.PanelRequest) -> list[panels.Block]:
    """Show what failed for good in the queue that is the key. What the items carry is not shown."""
    after = panels.read_cursor(request.after, (0.0, ""))
    found: list[Record] = await request.store.read(ListItems(request.key, DEAD, panels.MOST_ROWS + 1, after))
    shown, rest = panels.page(found, lambda record: (record.created, record.record_id))
    rows = []
    for record in shown:
        item = read_item(record)
        error = item.error or {}
        told = (record.record_id, panels.written(record.created), record.fence - item.forgiven, record.owner[:12])
        why = (error.get("code"), error.get("message"))
        rows.append(panels.row(record.record_id, *told, *why, actions=("retry",), state=record.state))
    columns = ("Item", "Since", "Attempts", "Agent", "Code", "Why")
    actions = {"retry": panels.Action("Try again", panels.DECISION[:1], command="bespeak queues retry KEY")}
    command = panels.shell("queues", "show", request.key)
    title, empty = cells(f"Dead items of {request.key}", f"The queue {request.key} has no dead item.")
    return [panels.Table(title, columns, rows, actions, rest, empty, command)]


async def retry(deed: panels.Deed) -> Refused | None:
    """Put a dead item back into its queue."""
    record: Record | None = await deed.store.read(FindRecord((SUBMISSION,), deed.key))
    if record is None:
        return panels.not_found("item", deed.key)
    if record.state != DEAD:
        return panels.conflicting(f"{deed.key} is {record.state}; only a dead item is tried again.")
    details = {"tracking_id": deed.key, "decided_by": deed.by.name}
    done = await deed.carry_out("RETRY", "/", details, retry_item(record))
    return panels.conflicting(f"{deed.key} has changed; load again.") if isinstance(done, Conflict) else None
