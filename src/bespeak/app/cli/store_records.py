"""`bespeak store records`, `show` and `expire`: what agents keep in the store, by kind."""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.app.cli.console import line, print_json, print_lines
from bespeak.app.cli.deciding import visit_store
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.target_store import store_options
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.record_survey import CountRecords, ExpireRecord, FindAnyRecord, KindCount
from bespeak.state.store.commands.records import NEVER, ListRecords, Record
from bespeak.state.store.commands.steps import WORKFLOW, ReadSteps
from bespeak.state.store.store import Store
from bespeak.state.store.sweeper import Sweeper

_MOST: Final = 10_000
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(short_help="List records by kind.")
@store_options
@click.option("--kind", help="List the records of this kind; without it, count those of every kind.")
@click.option("--state", help="Only records in this state.")
@click.option("--owner", help="Only records of this owner, such as an Agent-ID.")
@click.option(
    "--limit", type=click.IntRange(1, _MOST), default=100, show_default=True, help="Maximum number of records."
)
@_json_option
def records(
    *,
    target: str,
    override: str | None,
    kind: str | None,
    state: str | None,
    owner: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Count the records in the store by kind and state, or list those of one kind, oldest first.

    Entities, grants, subscriptions, publications, alerts, messages, monitors, procedures, reports and workflows are
    records.

    \b
    Examples:
    bespeak store records examples/hotel
    bespeak store records examples/hotel --kind workflow --state failed
    """
    if kind is None:
        if state is not None or owner is not None:
            raise click.UsageError("--state and --owner need --kind")
        counts: list[KindCount] = visit_store(target, override, lambda store: store.read(CountRecords()))
        _print_counts(counts, as_json=as_json)
        return
    states = () if state is None else (state,)
    wanted = ListRecords(kind, owner, states, limit=limit)
    found: list[Record] = visit_store(target, override, lambda store: store.read(wanted))
    if as_json:
        print_json([_as_dict(record) for record in found])
    elif found:
        print_lines(_list_line(record) for record in found)
    else:
        click.echo(f"no records of kind {kind}")


@click.command(short_help="Show a record.")
@click.argument("record_id", metavar="ID")
@store_options
def show(record_id: str, target: str, override: str | None) -> None:
    """Show the record with an ID as JSON; a workflow with its steps."""

    async def look(store: Store) -> dict[str, Any]:
        record: Record | None = await store.read(FindAnyRecord(record_id))
        if record is None:
            raise CommandFailedError(f"record {record_id!r} not found; see `bespeak store records`")
        shown = {**_as_dict(record), "content": record.content()}
        if record.kind == WORKFLOW:
            rows = await store.read(ReadSteps(record_id))
            shown["steps"] = [msgspec.to_builtins(row) | {"output": msgspec.json.decode(row.output)} for row in rows]
        return shown

    print_json(visit_store(target, override, look))


@click.command(short_help="Remove what has expired.")
@store_options
@click.option("--id", "ids", multiple=True, metavar="ID", help="Expire this record first; repeat it for several.")
def expire(target: str, override: str | None, ids: tuple[str, ...]) -> None:
    """Remove the rows that have expired. A running server does the same once a minute.

    With --id, the record expires now, whatever its state: nothing that was due for it happens. Either all records named
    are removed or none. The audit trail is kept.

    \b
    Example:
    bespeak store expire examples/hotel --id monitor-2f6c...
    """

    async def remove(store: Store) -> int:
        for record_id in ids:
            if await store.read(FindAnyRecord(record_id)) is None:
                raise CommandFailedError(f"record {record_id!r} not found; nothing was removed")
        if ids:
            done = await store.do(*(ExpireRecord(record_id) for record_id in ids))
            assert not isinstance(done, Conflict)
        return await Sweeper(store).sweep()

    removed = visit_store(target, override, remove)
    click.echo(f"{removed} expired row{'' if removed == 1 else 's'} removed")


def _print_counts(counts: list[KindCount], *, as_json: bool) -> None:
    if as_json:
        kinds: dict[str, dict[str, int]] = {}
        for count in counts:
            kinds.setdefault(count.kind, {})[count.state] = count.records
        print_json(kinds)
    elif counts:
        print_lines(line(f"{one.kind:<16}", f"  {one.state:<16}", f"  {one.records:>10,}") for one in counts)
    else:
        click.echo("no records")


def _list_line(record: Record) -> Text:
    due = "" if record.due is None else f"  due {write_instant(record.due)}"
    return line(f"{record.record_id}  {record.state:<12}  {write_instant(record.updated)}  of {record.owner[:12]}{due}")


def _as_dict(record: Record) -> dict[str, Any]:
    """Return what is known of a record beside its content."""
    times = {"created": record.created, "updated": record.updated, "due": record.due, "expires": record.expires}
    return {
        **{name: getattr(record, name) for name in ("record_id", "kind", "owner", "key", "state", "version")},
        **{name: None if time is None or time >= NEVER else write_instant(time) for name, time in times.items()},
    }
