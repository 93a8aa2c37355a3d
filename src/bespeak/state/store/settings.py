"""Settings of stored state: `[store]`, `[idempotency]`, `[sessions]` and `[cases]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bespeak.errors import ConfigError
from bespeak.state.rules import IDEMPOTENCY_TIME, SESSION_SETTING, STORE_PASSWORD, UNKNOWN_STORE
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.diagnostic import Rule, brief
from bespeak.text.reading.settings import setting
from bespeak.text.reading.table import Table

MEMORY: Final = "memory"
POSTGRES: Final = ("postgresql://", "postgres://")
DEFAULT_FILE: Final = "bespeak.db"  # file of the default store, in the folder of the deployment
OPERATOR: Final = "operator"  # default decider of cases
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PASSWORD: Final = re.compile(r"://[^/@:]*:([^@]+)@|[?&]password=([^&]+)")
_DAY: Final = 86400
_YEAR: Final = 366 * _DAY
_LONGEST_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class MissingVariable:
    """An environment variable that a place needs and that is not set."""

    name: str


def _read_place(table: Table, key: str) -> str | None:
    place = table.text(key)
    if place is None:
        return None
    at, fault = table.pointer(key), ""
    scheme = _SCHEME.match(place)
    if not place.strip():
        fault = f"`{key}` is empty"
    elif not place.isprintable():
        fault = f"`{key}` has characters that cannot be printed: {brief(place)}"
    elif scheme is not None and not place.startswith(POSTGRES):
        # The rest of the address may hold a password.
        fault = f"`{key}` must be a path, memory or postgresql://...; got {scheme[0]}"
    if fault:
        table.findings.error(UNKNOWN_STORE, fault, at, 'Write a path, "memory" or "postgresql://...".')
        return None
    if has_password(place):
        message = f"`{key}` contains the password of the database, readable by everyone who can read the file"
        advice = 'Write it like "postgresql://user:${DB_PASSWORD}@host/name", and set the variable.'
        table.findings.warning(STORE_PASSWORD, message, at, advice)
    return place


def has_password(place: str) -> bool:
    """Check for a password that is not a variable."""
    if not place.startswith(POSTGRES):
        return False
    return any(_VARIABLE.sub("", part) for found in _PASSWORD.findall(place) for part in found)


def _parse_recipient(name: str) -> str | None:
    return name if name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME else None


def _seconds(default: float, about: str, most: float, rule: Rule) -> float:
    return setting(default, about, kind="seconds", bounds=(1, most), rule=rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where state is kept, and what an acknowledged change survives."""

    place: str | None = setting(
        None,
        "A path from the folder of the file, `memory`, or `postgresql://...`; `${VAR}` comes from the environment. "
        f"Without it: `{DEFAULT_FILE}` in the folder.",
        read=_read_place,
    )
    durability: str = setting(
        "full",
        "What an acknowledged change survives. `full`: a loss of power; `process`: the death of the process.",
        choices=("full", "process"),
    )

    def located(self, base: Path, environment: Mapping[str, str]) -> str | MissingVariable:
        """Return the place with its variables replaced and its path made absolute."""
        if self.place is None:
            return str(base / DEFAULT_FILE)
        for name in _VARIABLE.findall(self.place):
            if not environment.get(name):
                return MissingVariable(name)
        place = _VARIABLE.sub(lambda match: environment[match.group(1)], self.place)
        return place if place == MEMORY or _SCHEME.match(place) else str(base / place)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencySettings:
    """How long the answers to requests with an idempotency key are kept, and who must send a key."""

    retention: float = _seconds(_DAY, "Seconds for which the answer to a key is stored.", _YEAR, IDEMPOTENCY_TIME)
    lease: float = _seconds(
        30,
        "Seconds after which another process may take over the requests and workflows of a process that has died.",
        _DAY,
        IDEMPOTENCY_TIME,
    )
    require: bool = setting(
        False, "Refuse requests without a key for endpoints that are irreversible and not idempotent.", security=True
    )

    def checked(self, table: Table) -> IdempotencySettings:
        """Refuse a lease that outlives the retention."""
        if self.lease <= self.retention:
            return self
        message = f"`lease` must be at most `retention` ({self.retention:.10g} seconds); got {self.lease:.10g}"
        advice = "Make it shorter: a key must not be forgotten while its request is running."
        table.findings.error(IDEMPOTENCY_TIME, message, table.pointer("lease"), advice)
        return IdempotencySettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Which Session-IDs are accepted, and how long a session lives."""

    idle: float = _seconds(3600, "Seconds without a request after which a session ends.", 30 * _DAY, SESSION_SETTING)
    suspended: float = _seconds(
        7 * _DAY, "Maximum seconds for which a session may stay suspended.", _YEAR, SESSION_SETTING
    )
    entropy: bool = setting(True, "Refuse Session-IDs that could be guessed.", security=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSettings:
    """Decisions that other people have to take: who decides, and until when."""

    default_recipient: str = setting(
        OPERATOR,
        "The recipient if the caller names none: an Agent-ID, or a name for people.",
        parse=_parse_recipient,
        form=f"a name of 1 to {_LONGEST_NAME} printable characters",
        advice="Write an Agent-ID, or a name.",
        rule=SESSION_SETTING,
    )
    confirmation: float = _seconds(
        _DAY, "Seconds within which a call must be confirmed and then made.", _YEAR, SESSION_SETTING
    )
    most_open: int = setting(
        10_000, "Maximum number of undecided cases of one kind per agent; further ones are answered with 429."
    )


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
    lock = None if role == "visitor" else FileLock(path.with_name(path.name + ".lock"), exclusive=role == "sole")
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
