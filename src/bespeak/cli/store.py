"""`bespeak store`: look at, bring up to date, copy out and fill what must outlive requests."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from bespeak.cli.console import line, print_json, print_lines
from bespeak.cli.main import EXIT_GOOD, EXIT_REFUSED, RefusedError
from bespeak.errors import ConfigError, StoreError
from bespeak.server.state import store_place
from bespeak.store.command import Conflict
from bespeak.store.examination import Examination, examine, upgrade
from bespeak.store.migrations import CURRENT
from bespeak.store.opening import open_store
from bespeak.store.store import Store
from bespeak.store.transfer import export_store, import_store


@click.group()
def store() -> None:
    """Look at, bring up to date, copy out and fill the store of a deployment.

    TARGET is the deployment, whose configuration says where its store is; --store names the store itself.
    """


def _place(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--store", "override", metavar="PLACE", help="A file, or postgresql://...")(command)
    return click.argument("target", default=".")(command)


@store.command()
@_place
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(target: str, override: str | None, as_json: bool) -> int:
    """Look through the whole store: damage, version, rows. Nothing is changed; the exit code is 1 on damage."""
    found = asyncio.run(examine(store_place(target, override)))
    if as_json:
        print_json({**_as_dict(found), "current": CURRENT})
    else:
        print_lines(_lines(found))
    return EXIT_REFUSED if found.damage or not found.is_current else EXIT_GOOD


@store.command()
@_place
def migrate(target: str, override: str | None) -> None:
    """Bring the tables up to date. A server does the same when it starts; stop it before."""
    before = asyncio.run(upgrade(store_place(target, override)))
    if before == CURRENT:
        click.echo(f"the tables are of version {CURRENT} already")
    else:
        click.echo(f"the tables were of version {before} and are of version {CURRENT} now")


@store.command()
@_place
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file, in one step.")
def export(target: str, override: str | None, output: Path | None) -> None:
    """Write every row as a line of JSON: the state of one moment, while servers go on.

    The lines hold all that the store does, answers and records among them. Keep them as safe as the store.

    \b
    Examples:
    bespeak store export examples/hotel -o backup.jsonl
    bespeak store export --store postgresql://localhost/rooms > backup.jsonl
    """
    place = _existing(store_place(target, override))
    if output is None:
        asyncio.run(_with_store(place, lambda opened: export_store(opened, sys.stdout.buffer.write)))
        sys.stdout.buffer.flush()
        return
    with _in_one_step(output) as write:
        rows = asyncio.run(_with_store(place, lambda opened: export_store(opened, write)))
    click.echo(f"{rows} row{'' if rows == 1 else 's'} written to {output}")


@store.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@_place
def import_(file: Path, target: str, override: str | None) -> None:
    """Fill an empty store from FILE, which `bespeak store export` wrote: the whole of it, or nothing."""
    if not file.is_file():
        raise ConfigError(f"there is no file {file}")
    place = store_place(target, override)
    outcome = asyncio.run(_with_store(place, lambda opened: import_store(opened, file), role="sole"))
    if not isinstance(outcome, Conflict):
        click.echo(f"{outcome} row{'' if outcome == 1 else 's'} taken from {file}")
        return
    details = outcome.details
    if outcome.reason == "not-empty":
        raise RefusedError(
            f"the store is not empty: {details['table']} has rows. Import into a new one; nothing was changed."
        )
    where = f"{file}, line {details['line']}" if details["line"] else str(file)
    raise RefusedError(f"{where}: {details['message']}. Nothing was taken.")


async def _with_store(place: str, use: Callable[[Store], Any], *, role: Any = "visitor") -> Any:
    opened = open_store(place, role=role)
    try:
        await opened.start()
        return await use(opened)
    except StoreError as error:
        raise ConfigError(str(error)) from error
    finally:
        await opened.close()


def _existing(place: str) -> str:
    """A place where a store is: one that is only made to be copied out is a slip of the pen."""
    if "://" not in place and not Path(place).is_file():
        raise ConfigError(f"there is no store at {place}")
    return place


@contextmanager
def _in_one_step(path: Path) -> Iterator[Callable[[bytes], object]]:
    """Write beside a file and put the whole in its place, for its owner only; a failure leaves what was there."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=".bespeak-", dir=path.parent)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


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
    for fault in found.damage:
        yield line(("damaged: ", "bold red"), fault)
    if not found.damage:
        yield line("whole")
