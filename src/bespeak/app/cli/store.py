"""`bespeak store`: inspect, migrate, export and import the store, and list, show and expire its records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.text import Text

from bespeak.errors import ConfigError
from bespeak.extensions.workflows.store import WORKFLOW, ReadSteps
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.commands.records import (
    NEVER,
    CountRecords,
    ExpireRecord,
    FindAnyRecord,
    KindCount,
    ListRecords,
    Record,
)
from bespeak.state.store.sql import CURRENT
from bespeak.state.store.store import Conflict, Store
from bespeak.state.store.sweeper import Sweeper
from bespeak.state.store.transfer import RECORDS, Examination, examine, export_store, import_store, upgrade
from bespeak.terminal import EXIT_GOOD, EXIT_REFUSED, PATH, CommandFailedError, LazyGroup
from bespeak.terminal.console import (
    json_option,
    limit_option,
    line,
    members,
    plural,
    print_json,
    print_lines,
    print_list,
    print_result,
)
from bespeak.terminal.deployment import store_place
from bespeak.terminal.target_store import store_options, use_store, visit_store, write_export


@click.group(cls=LazyGroup)
def store() -> None:
    """Inspect, migrate, export and import the store of a deployment, and expire what it keeps.

    TARGET is the deployment, whose configuration names the store; --store overrides it.
    """


@store.command(short_help="List records by kind.")
@store_options
@click.option("--kind", help="List the records of this kind; without it, count those of every kind.")
@click.option("--state", help="Only records in this state.")
@click.option("--owner", help="Only records of this owner, such as an Agent-ID.")
@limit_option("records")
@json_option
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
        if as_json:
            kinds: dict[str, dict[str, int]] = {}
            for count in counts:
                kinds.setdefault(count.kind, {})[count.state] = count.records
            print_json(kinds)
        elif counts:
            print_lines(line(f"{one.kind:<16}", f"  {one.state:<16}", f"  {one.records:>10,}") for one in counts)
        else:
            click.echo("no records")
        return
    wanted = ListRecords(kind, owner, () if state is None else (state,), limit=limit)
    found: list[Record] = visit_store(target, override, lambda store: store.read(wanted))
    print_list(found, _as_dict, _list_line, f"no records of kind {kind}", as_json=as_json)


@store.command(short_help="Show a record.")
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


@store.command(short_help="Remove what has expired.")
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

    click.echo(f"{plural(visit_store(target, override, remove), 'expired row')} removed")


def _list_line(record: Record) -> Text:
    due = "" if record.due is None else f"  due {write_instant(record.due)}"
    return line(f"{record.record_id}  {record.state:<12}  {write_instant(record.updated)}  of {record.owner[:12]}{due}")


def _as_dict(record: Record) -> dict[str, Any]:
    times = {"created": record.created, "updated": record.updated, "due": record.due, "expires": record.expires}
    return {
        **members(record, "record_id", "kind", "owner", "key", "state", "version"),
        **{name: None if time is None or time >= NEVER else write_instant(time) for name, time in times.items()},
    }


@store.command()
@store_options
@json_option
def check(target: str, override: str | None, as_json: bool) -> int:
    """Check the store for damage, and show its version and row counts.

    Nothing is changed. The exit code is 1 if the store is damaged or its tables are out of date.
    """
    found = asyncio.run(examine(store_place(target, override)))
    data = {**msgspec.structs.asdict(found), "current": CURRENT}
    print_result(data, _lines(found), as_json=as_json)
    return EXIT_REFUSED if found.damage or not found.is_current else EXIT_GOOD


@store.command()
@store_options
def migrate(target: str, override: str | None) -> None:
    """Migrate the tables to the current version.

    A server does the same when it starts. Stop the server first.
    """
    before = asyncio.run(upgrade(store_place(target, override)))
    done = f"migrated the tables from version {before} to version {CURRENT}"
    click.echo(f"the tables are already at version {CURRENT}" if before == CURRENT else done)


@store.command(short_help="Export the store as JSON Lines.")
@store_options
@click.option("-o", "--output", type=PATH, help="Write to this file, atomically.")
def export(target: str, override: str | None, output: Path | None) -> None:
    """Export every row as JSON Lines: a consistent snapshot, even while servers are running.

    The export contains everything in the store, including responses and audit records. Protect it like the store.

    \b
    Examples:
    bespeak store export examples/hotel -o backup.jsonl
    bespeak store export --store postgresql://localhost/rooms > backup.jsonl
    """
    write_export(store_place(target, override), output, export_store, "row")


@store.command("import", short_help="Import an export into an empty store.")
@click.argument("file", type=PATH)
@store_options
def import_(file: Path, target: str, override: str | None) -> None:
    """Import an export of `bespeak store export` into an empty store.

    Either every row of FILE is imported or none.
    """
    if not file.is_file():
        raise ConfigError(f"file not found: {file}")
    place = store_place(target, override)
    outcome = asyncio.run(use_store(place, lambda opened: import_store(opened, file), role="sole"))
    if not isinstance(outcome, Conflict):
        click.echo(f"{plural(outcome, 'row')} imported from {file}")
        return
    details = outcome.details
    if outcome.reason == "not-empty":
        advice = "Import into a new store; nothing was changed."
        raise CommandFailedError(f"the store is not empty: {details['table']} has rows. {advice}")
    where = f"{file}, line {details['line']}" if details["line"] else str(file)
    raise CommandFailedError(f"{where}: {details['message']}. Nothing was imported.")


def _lines(found: Examination) -> Iterator[Text]:
    yield line(found.name)
    state = "" if found.is_current or found.damage else f", not {CURRENT}: run `bespeak store migrate`"
    yield line(f"  tables   version {found.version}{state}")
    yield line(f"  size     {found.size:,} bytes")
    for name, count in found.rows.items():
        expired = found.expired.get(name, 0)
        yield line(f"  {name:<18} {count:>10,}" + (f"  ({expired:,} expired)" if expired else ""))
        if name == RECORDS:
            yield from (line(f"    {kind:<16} {number:>10,}") for kind, number in found.kinds.items())
    yield from (line(("damaged: ", "bold red"), fault) for fault in found.damage)
    if not found.damage:
        yield line("no damage")
