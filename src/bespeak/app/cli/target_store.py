"""The store argument of a command, and atomic file output."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from bespeak.errors import ConfigError, StoreError
from bespeak.state.store.opening import Role, open_store
from bespeak.state.store.settings import MEMORY
from bespeak.state.store.store import Store

Result = TypeVar("Result")


store_option = click.option("--store", "override", metavar="PLACE", help="Store: a file, or postgresql://...")


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the TARGET argument and the --store option."""
    return click.argument("target", default=".")(store_option(command))


async def use_store(place: str, use: Callable[[Store], Awaitable[Result]], *, role: Role = "visitor") -> Result:
    """Open the store, use it and close it."""
    opened = open_store(place, role=role)
    try:
        await opened.start()
        return await use(opened)
    except StoreError as error:
        raise ConfigError(str(error)) from error
    finally:
        await opened.close()


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


@contextmanager
def written_in_one_step(path: Path) -> Iterator[Callable[[bytes], object]]:
    """Write a file atomically, readable by its owner only; on failure the old file stays."""
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
