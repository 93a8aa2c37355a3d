"""`bespeak queues`: what waits in the queues of a service, what failed for good, and another attempt for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from bespeak.extensions.queues.store import DEAD, SUBMISSION, CountItems, ListItems, read_item, retry_item
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.store import Conflict, Store
from bespeak.terminal import EXIT_GOOD, CommandFailedError
from bespeak.terminal.console import json_option, limit_option, line, print_result
from bespeak.terminal.target_store import store_options, visit_store
from bespeak.text.diagnostics.diagnostic import printable


@click.group(short_help="Show the items of queues, and try dead ones again.")
def queues() -> None:
    """Show what waits in the queues of a service, and try again what failed for good."""


@queues.command("list")
@store_options
@json_option
def list_queues(*, target: str, override: str | None, as_json: bool) -> int:
    """Count the items of each queue by state."""
    found: dict[str, dict[str, int]] = {}
    for one in visit_store(target, override, lambda store: store.read(CountItems())):
        found.setdefault(one.queue, {})[one.state] = one.count
    lines = (
        line((printable(name), "bold"), "  ", ", ".join(f"{count:,} {state}" for state, count in states.items()))
        for name, states in found.items()
    )
    print_result({"queues": found}, lines if found else [line("No queue has an item.")], as_json=as_json)
    return EXIT_GOOD


@queues.command("show")
@click.argument("name")
@store_options
@click.option("--state", default=DEAD, show_default=True, help="State of the items: queued, running, done or dead.")
@limit_option("items", 100)
@json_option
def show_queue(*, target: str, override: str | None, name: str, state: str, limit: int, as_json: bool) -> int:
    """Show the items of a queue in one state, the oldest first; those that failed for good by default."""
    wanted = ListItems(name, state, limit)
    items = [_as_dict(record) for record in visit_store(target, override, lambda store: store.read(wanted))]
    empty = [line(f"The queue {printable(name)!r} has no item that is {printable(state)}.")]
    print_result({"queue": name, "items": items}, list(_lines(items)) or empty, as_json=as_json)
    return EXIT_GOOD


@queues.command("retry")
@click.argument("tracking_id")
@store_options
@json_option
def retry(*, target: str, override: str | None, tracking_id: str, as_json: bool) -> int:
    """Put an item that failed for good back into its queue, with all its attempts."""

    async def change(store: Store) -> Record:
        record: Record | None = await store.read(FindRecord((SUBMISSION,), tracking_id))
        done = None if record is None or record.state != DEAD else await store.do(retry_item(record))
        if done is None or isinstance(done, Conflict):
            raise CommandFailedError(f"there is no dead item {tracking_id!r}; `bespeak queues show NAME` lists them")
        changed: Record = done[0]
        return changed

    changed = visit_store(target, override, change)
    print_result(_as_dict(changed), [line(f"{tracking_id} waits in its queue again.")], as_json=as_json)
    return EXIT_GOOD


def _as_dict(record: Record) -> dict[str, Any]:
    item = read_item(record)
    return {
        "tracking_id": record.record_id,
        "state": record.state,
        "owner": record.owner,
        "submitted_at": write_instant(record.created),
        "attempts": record.fence - item.forgiven,
        "payload": item.payload,
        **({"error": item.error} if item.error else {}),
    }


def _lines(items: list[dict[str, Any]]) -> Iterator[Text]:
    for item in items:
        attempts = f"{item['attempts']} attempt{'' if item['attempts'] == 1 else 's'}"
        yield line((item["tracking_id"], "bold"), f"  {item['state']}  {attempts}  of {item['owner'][:12]}")
        if "error" in item:
            yield line(f"  {item['error']['code']}: {printable(item['error']['message'])[:200]}")
