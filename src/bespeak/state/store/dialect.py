"""Translation from the SQL of commands to the SQL of each database."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# SQLite's own clock; `unixepoch('subsec')` would read better, and is missing before 3.42.
_SQLITE: Final = {"now": "((julianday('now') - 2440587.5) * 86400.0)", "lock": "", "skip": ""}
_POSTGRES: Final = {
    "now": "extract(epoch FROM clock_timestamp())::float8",
    "lock": "FOR UPDATE",
    "skip": "FOR UPDATE SKIP LOCKED",
}
_KNOWN: Final = 1024
"""Cache size: there are as many texts as commands, and a mistake cannot fill the memory."""

_WORD = re.compile(r"\{(now|lock|skip)\}")
_ADVANCE = re.compile(r"\{advance ([a-z_]+)\}")
_ADVANCED: Final = (
    r"SELECT setval(pg_get_serial_sequence('\1', 'position'), (SELECT coalesce(max(position), 0) + 1 FROM \1), false)"
)


@lru_cache(_KNOWN)
def sqlite_sql(sql: str) -> str:
    """Return a statement for SQLite."""
    # SQLite numbers new rows behind the highest there ever was.
    return _ADVANCE.sub("SELECT 1", _WORD.sub(lambda found: _SQLITE[found[1]], sql))


@lru_cache(_KNOWN)
def sqlite_count(sql: str) -> str | None:
    """Return a change without its RETURNING 1, or None if it has none.

    The rows of RETURNING 1 only count the changes. SQLite counts them anyway, and is a third faster without the clause.
    """
    change = sqlite_sql(sql).rstrip()
    return change.removesuffix("RETURNING 1") if change.endswith(" RETURNING 1") else None


@lru_cache(_KNOWN)
def postgres_sql(sql: str) -> str:
    """Return a statement for PostgreSQL, with numbered parameters."""
    first, *rest = _ADVANCE.sub(_ADVANCED, _WORD.sub(lambda found: _POSTGRES[found[1]], sql)).split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
