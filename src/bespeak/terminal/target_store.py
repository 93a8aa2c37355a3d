"""The store argument of a command, input files that must be usable, and atomic file output."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from bespeak.errors import ConfigError, StoreError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.store.settings import MEMORY, Role, open_store
from bespeak.state.store.store import Store
from bespeak.terminal.console import plural
from bespeak.terminal.deployment import store_place
from bespeak.text.diagnostics.diagnostic import Diagnostic

Result = TypeVar("Result")
Write = Callable[[bytes], object]
_OWNER_ONLY: Final = 0o600
store_option = click.option("--store", "override", metavar="PLACE", help="Store: a file, or postgresql://...")


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("target", default=".")(store_option(command))


async def use_store(place: str, use: Callable[[Store], Awaitable[Result]], *, role: Role = "visitor") -> Result:
    opened = open_store(place, role=role)
    try:
        await opened.start()
        return await use(opened)
    except StoreError as error:
        raise ConfigError(str(error)) from error
    finally:
        await opened.close()


def visit_store(target: str, override: str | None, use: Callable[[Store], Awaitable[Result]]) -> Result:
    """Use the store of a deployment. A server may be running on it."""
    return asyncio.run(use_store(existing_place(store_place(target, override)), use))


def existing_place(place: str) -> str:
    """Return `place` if it has a store, so that a read-only command does not create one at a mistyped place."""
    if not is_there(lasting_place(place)):
        raise ConfigError(f"no store at {place}; give its place with --store")
    return place


def lasting_place(place: str) -> str:
    """Return `place` if other processes can open it."""
    if place == MEMORY:
        raise ConfigError("the store `memory` exists only inside the server process; use a file or a database")
    return place


def is_there(place: str) -> bool:
    """Return True if a store may exist at `place`. Databases are assumed to exist."""
    return "://" in place or Path(place).is_file()


def usable(found: Result | Diagnostic | Fault, file: Path) -> Result:
    """Return what was read from a file; raise ConfigError if it could not be read."""
    if isinstance(found, Diagnostic | Fault):
        raise ConfigError(f"{file}: {found.message}")
    return found


def write_export(place: str, output: Path | None, export: Callable[[Store, Write], Awaitable[int]], noun: str) -> None:
    """Write what a store exports to a file, atomically, or to standard output."""
    existing_place(place)
    if output is None:
        asyncio.run(use_store(place, lambda store: export(store, sys.stdout.buffer.write)))
        sys.stdout.buffer.flush()
        return
    with written_in_one_step(output) as write:
        count = asyncio.run(use_store(place, lambda store: export(store, write)))
    click.echo(f"{plural(count, noun)} written to {output}")


@contextmanager
def written_in_one_step(path: Path) -> Iterator[Write]:
    """Write a file atomically, readable by its owner only; on failure the old file stays."""
    try:
        with _replaced(path, _OWNER_ONLY) as write:
            yield write
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def _replaced(path: Path, mode: int, owner: tuple[int, int] | None = None) -> Iterator[Write]:
    descriptor, name = tempfile.mkstemp(prefix=".bespeak-", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        if owner is not None and owner != (beside.stat().st_uid, beside.stat().st_gid):
            os.chown(beside, *owner)
        beside.chmod(mode)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_secret(path: Path, text: str, *, force: bool | None) -> None:
    """Write a secret to a file that others can never read. `force` is None if the command has no --force option."""
    or_force = "" if force is None else ", or replace it with --force"
    try:
        if force:
            replace_file(path, text, mode=_OWNER_ONLY)
            return
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(f"{path} already exists and may be a key in use. Give another file{or_force}.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def replace_file(path: Path, text: str, *, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Replace a file atomically, even if the power fails."""
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise ConfigError(f"{path} is not a regular file and will not be replaced.")
    with _replaced(path, mode, owner) as write:
        write(text.encode())
    if os.name == "posix":  # where folders can be opened: make the new name durable
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
