"""The store that a command works on, and files that it writes whole or not at all."""

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


store_option = click.option("--store", "override", metavar="PLACE", help="A file, or postgresql://...")


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a command that works on a store takes last: a TARGET, or the store itself."""
    return click.argument("target", default=".")(store_option(command))


async def use_store(place: str, use: Callable[[Store], Awaitable[Result]], *, role: Role = "visitor") -> Result:
    """Open the store, do something with it, and let go of it."""
    opened = open_store(place, role=role)
    try:
        await opened.start()
        return await use(opened)
    except StoreError as error:
        raise ConfigError(str(error)) from error
    finally:
        await opened.close()


def existing_place(place: str) -> str:
    """A place where a store is: one that is only made to be read is a slip of the pen."""
    if not is_there(lasting_place(place)):
        raise ConfigError(f"there is no store at {place}; name it with --store, if the server was given another")
    return place


def lasting_place(place: str) -> str:
    """A place that other processes can look at."""
    if place == MEMORY:
        raise ConfigError("the store `memory` is the server's own and ends with it; keep state in a file or database")
    return place


def is_there(place: str) -> bool:
    """Whether a store is at a place; of a database its server knows."""
    return "://" in place or Path(place).is_file()


@contextmanager
def written_in_one_step(path: Path) -> Iterator[Callable[[bytes], object]]:
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
