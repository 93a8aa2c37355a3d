"""Translation from the SQL of commands to the SQL of each database."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# From block to block, because SQLite indexes the ids of each block of positions by themselves.
_RECORD_BY_BLOCK: Final = """position IN (
    WITH RECURSIVE blocks (block, wanted) AS (
        SELECT max(position) >> 10, ? FROM audit
        UNION ALL
        SELECT (SELECT max(position) FROM audit WHERE position < block << 10) >> 10, wanted
        FROM blocks WHERE block IS NOT NULL
    )
    SELECT position FROM blocks CROSS JOIN audit
    ON position >> 10 = block AND substr(audit_id, 1, 6) = substr(wanted, 1, 6) AND audit_id = wanted
)"""
_SQLITE: Final = {
    # SQLite's own clock; `unixepoch('subsec')` would read better, and is missing before 3.42.
    "now": "((julianday('now') - 2440587.5) * 86400.0)",
    "lock": "",
    "skip": "",
    "audit_id": _RECORD_BY_BLOCK,
}
_POSTGRES: Final = {
    "now": "extract(epoch FROM clock_timestamp())::float8",
    "lock": "FOR UPDATE",
    "skip": "FOR UPDATE SKIP LOCKED",
    "audit_id": "audit_id = ?",
}
_KNOWN: Final = 1024
"""Cache size: there are as many texts as commands, and a mistake cannot fill the memory."""

_WORD = re.compile(r"\{(now|lock|skip|audit_id)\}")
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
