"""`bespeak store`: inspect, migrate, export and import the store, and expire what it keeps."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from bespeak.app.cli.console import line, print_json, print_lines
from bespeak.app.cli.main import EXIT_GOOD, EXIT_REFUSED, CommandFailedError
from bespeak.app.cli.store_ledger import ledger
from bespeak.app.cli.store_records import expire, records, show
from bespeak.app.cli.target_store import existing_place, store_options, use_store, written_in_one_step
from bespeak.app.server.state import store_place
from bespeak.errors import ConfigError
from bespeak.state.store.command import Conflict
from bespeak.state.store.examination import RECORDS, Examination, examine, upgrade
from bespeak.state.store.migrations import CURRENT
from bespeak.state.store.transfer import export_store, import_store


@click.group()
def store() -> None:
    """Inspect, migrate, export and import the store of a deployment, and expire what it keeps.

    TARGET is the deployment, whose configuration names the store; --store overrides it.
    """


for _command in (records, show, expire, ledger):
    store.add_command(_command)


@store.command()
@store_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(target: str, override: str | None, as_json: bool) -> int:
    """Check the store for damage, and show its version and row counts.

    Nothing is changed. The exit code is 1 if the store is damaged or its tables are out of date.
    """
    found = asyncio.run(examine(store_place(target, override)))
    if as_json:
        print_json({**_as_dict(found), "current": CURRENT})
    else:
        print_lines(_lines(found))
    return EXIT_REFUSED if found.damage or not found.is_current else EXIT_GOOD


@store.command()
@store_options
def migrate(target: str, override: str | None) -> None:
    """Migrate the tables to the current version.

    A server does the same when it starts. Stop the server first.
    """
    before = asyncio.run(upgrade(store_place(target, override)))
    if before == CURRENT:
        click.echo(f"the tables are already at version {CURRENT}")
    else:
        click.echo(f"migrated the tables from version {before} to version {CURRENT}")


@store.command(short_help="Export the store as JSON Lines.")
@store_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file, atomically.")
def export(target: str, override: str | None, output: Path | None) -> None:
    """Export every row as JSON Lines: a consistent snapshot, even while servers are running.

    The export contains everything in the store, including responses and audit records. Protect it like the store.

    \b
    Examples:
    bespeak store export examples/hotel -o backup.jsonl
    bespeak store export --store postgresql://localhost/rooms > backup.jsonl
    """
    place = existing_place(store_place(target, override))
    if output is None:
        asyncio.run(use_store(place, lambda opened: export_store(opened, sys.stdout.buffer.write)))
        sys.stdout.buffer.flush()
        return
    with written_in_one_step(output) as write:
        rows = asyncio.run(use_store(place, lambda opened: export_store(opened, write)))
    click.echo(f"{rows} row{'' if rows == 1 else 's'} written to {output}")


@store.command("import", short_help="Import an export into an empty store.")
@click.argument("file", type=click.Path(path_type=Path))
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
        click.echo(f"{outcome} row{'' if outcome == 1 else 's'} imported from {file}")
        return
    details = outcome.details
    if outcome.reason == "not-empty":
        raise CommandFailedError(
            f"the store is not empty: {details['table']} has rows. Import into a new store; nothing was changed."
        )
    where = f"{file}, line {details['line']}" if details["line"] else str(file)
    raise CommandFailedError(f"{where}: {details['message']}. Nothing was imported.")


def _as_dict(found: Examination) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


def _lines(found: Examination) -> Iterator[Text]:
    yield line(found.name)
    state = "" if found.is_current or found.damage else f", not {CURRENT}: run `bespeak store migrate`"
    yield line(f"  tables   version {found.version}{state}")
    yield line(f"  size     {found.size:,} bytes")
    for name, count in found.rows.items():
        expired = found.expired.get(name, 0)
        yield line(f"  {name:<18} {count:>10,}" + (f"  ({expired:,} expired)" if expired else ""))
        if name == RECORDS:
            for kind, number in found.kinds.items():
                yield line(f"    {kind:<16} {number:>10,}")
    for fault in found.damage:
        yield line(("damaged: ", "bold red"), fault)
    if not found.damage:
        yield line("no damage")
