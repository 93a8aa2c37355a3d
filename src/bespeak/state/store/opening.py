"""Opening a store by its place: a path, `memory`, or `postgresql://...`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from bespeak.errors import ConfigError
from bespeak.state.store.settings import MEMORY, POSTGRES
from bespeak.state.store.store import Store

Role = Literal["sole", "shared", "visitor"]  # the only server, one of several, or a short-lived command


def open_store(place: str, *, role: Role = "visitor", durability: str = "full") -> Store:
    """Open the store at a place; raise ConfigError with the reason if that fails."""
    if place.startswith(POSTGRES):
        with postgres_needed():
            from bespeak.state.store.postgres import PostgresStore  # noqa: PLC0415 - an extra
        return PostgresStore(place, durability=durability)
    from bespeak.state.store.sqlite import SqliteStore  # noqa: PLC0415
    from bespeak.state.store.sqlite_file import FileLock  # noqa: PLC0415 - no file, no lock

    if place == MEMORY:
        if role == "shared":
            raise ConfigError("The store `memory` belongs to one process; several workers need a file or PostgreSQL.")
        return SqliteStore.in_memory()
    if "://" in place:
        scheme = place.partition("://")[0]
        raise ConfigError(f"{scheme}:// is not a supported store; give a path, `memory` or postgresql://...")
    if Path(place).name == ":memory:":
        raise ConfigError("Write `memory` for a store in memory; `:memory:` would be a file of that name.")
    path = resolved(place)
    beside = path.with_name(path.name + ".lock")
    lock = None if role == "visitor" else FileLock(beside, exclusive=role == "sole")
    store = SqliteStore(str(path), durability=durability, lock=lock)
    if role == "visitor":
        store.sole = False
    return store


def resolved(place: str) -> Path:
    """Resolve links, so that two names of one file share one lock."""
    try:
        path = Path(place).resolve()
        is_there, is_folder = path.parent.is_dir(), path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"The store cannot be at {place!r}: {error}. Name a file with --store.") from error
    if not is_there:
        raise ConfigError(
            f"The store cannot be at {place}: the folder {path.parent} does not exist. Make it, or name another file "
            "with --store."
        )
    if is_folder:
        raise ConfigError(f"The store cannot be at {place}, which is a folder. Name a file in it with --store.")
    return path


@contextmanager
def postgres_needed() -> Iterator[None]:
    """Raise ConfigError with install advice if an import of the extra fails inside the block."""
    try:
        yield
    except ImportError as error:
        raise ConfigError("PostgreSQL needs one more package: pip install 'bespeak[postgres]'") from error
