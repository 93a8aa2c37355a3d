"""Migrations: forward only, and never changed once they were released."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.state.store import sql
from bespeak.state.store.sql import (
    CURRENT,
    POSTGRES_WORDS,
    SQLITE_WORDS,
    migrations,
    postgres_sql,
    sqlite_count,
    sqlite_sql,
    statements,
)
from bespeak.state.store.transfer import shapes

SOURCE = Path(sql.__file__).parents[2]


def test_the_version_is_the_number_of_migrations() -> None:
    files = (SOURCE / "state/store/tables.sql", *(SOURCE / "extensions").glob("*/tables.sql"))
    numbers = {
        int(number) for file in files for number in re.findall(r"^-- migration (\d+)$", file.read_text(), re.MULTILINE)
    }
    assert numbers == set(range(1, CURRENT + 1))
    assert statements(CURRENT, SQLITE_WORDS) == []


@pytest.mark.parametrize("version", range(CURRENT))
def test_migration_from_each_version_leads_to_the_same_tables(version: int) -> None:
    whole, halves = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    rest = statements(version, SQLITE_WORDS)
    everything = statements(0, SQLITE_WORDS)
    for statement in everything:
        whole.execute(statement)
    for statement in (*everything[: len(everything) - len(rest)], *rest):
        halves.execute(statement)
    tables = "SELECT sql FROM sqlite_master ORDER BY name"
    assert whole.execute(tables).fetchall() == halves.execute(tables).fetchall()
    whole.close()
    halves.close()


def test_announcements_that_nobody_delivered_are_removed() -> None:
    connection = sqlite3.connect(":memory:")
    clearing = next(
        number for number, migration in enumerate(migrations()) if migration[0].startswith("DELETE FROM outbox")
    )
    rest = statements(clearing, SQLITE_WORDS)
    everything = statements(0, SQLITE_WORDS)
    for statement in everything[: len(everything) - len(rest)]:
        connection.execute(statement)
    columns = "topic, recipient, payload, created, due, fence, attempts"
    put = f"INSERT INTO outbox ({columns}) VALUES (?, 'x', '', 0, 0, 0, 0)"
    connection.executemany(put, [("escalation",), ("delivery",)])
    for statement in rest:
        connection.execute(statement)
    assert connection.execute("SELECT topic FROM outbox").fetchall() == [("delivery",)]
    connection.close()


def test_each_placeholder_is_defined_for_both_databases() -> None:
    used = {word for migration in migrations() for text in migration for word in re.findall(r"\{(\w+)\}", text)}
    assert used <= SQLITE_WORDS.keys()
    assert SQLITE_WORDS.keys() == POSTGRES_WORDS.keys()


def test_a_record_is_found_by_its_id_with_an_index() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in statements(0, SQLITE_WORDS):
        connection.execute(statement)
    plan = connection.execute(sqlite_sql("EXPLAIN QUERY PLAN SELECT 1 FROM audit WHERE {audit_id}"), ("a",)).fetchall()
    connection.close()
    assert any("audit_audit_id (<expr>=? AND <expr>=?)" in row[3] for row in plan)
    assert not any(row[3].startswith("SCAN audit") for row in plan)


@pytest.mark.parametrize("name", [name for name, shape in shapes().items() if shape.expires])
def test_expired_rows_are_found_by_an_index(name: str) -> None:
    connection = sqlite3.connect(":memory:")
    for statement in statements(0, SQLITE_WORDS):
        connection.execute(statement)
    plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM {name} WHERE expires <= ? LIMIT 5", (1,)).fetchall()
    connection.close()
    assert f"{name}_expires" in plan[0][3]


def test_accounts_that_need_no_row_lose_it() -> None:
    connection = sqlite3.connect(":memory:")
    everything, rest = statements(0, SQLITE_WORDS), statements(10, SQLITE_WORDS)
    for statement in everything[: len(everything) - len(rest)]:
        connection.execute(statement)
    names = [("held",), ("opening",), ("principal/acme",), ("sales",)]
    connection.executemany("INSERT INTO ledger_accounts VALUES (?, 'EUR', 1, 0)", names)
    for statement in rest:
        connection.execute(statement)
    left = connection.execute("SELECT account FROM ledger_accounts ORDER BY account").fetchall()
    connection.close()
    assert left == [("opening",), ("principal/acme",)]


def test_parameters_are_numbered_and_sequences_advanced_for_postgresql_only() -> None:
    assert postgres_sql("SELECT ? + ?, '{other}'") == "SELECT $1 + $2, '{other}'"
    assert sqlite_sql("SELECT ? + ?, '{other}'") == "SELECT ? + ?, '{other}'"
    assert sqlite_sql("{advance audit}") == "SELECT 1"
    sql = postgres_sql("{advance audit}")
    assert "pg_get_serial_sequence('audit', 'position')" in sql
    assert "FROM audit" in sql


@pytest.mark.parametrize(("word", "clause"), [("lock", "FOR UPDATE"), ("skip", "FOR UPDATE SKIP LOCKED")])
def test_rows_are_locked_where_there_is_more_than_one_writer(word: str, clause: str) -> None:
    assert postgres_sql(f"SELECT 1 {{{word}}}") == f"SELECT 1 {clause}"
    assert sqlite_sql(f"SELECT 1 {{{word}}}") == "SELECT 1 "


def test_the_clock_of_sqlite_counts_seconds_since_1970_with_fractions() -> None:
    connection = sqlite3.connect(":memory:")
    before = time.time()
    found = connection.execute(sqlite_sql("SELECT {now}")).fetchone()[0]
    connection.close()
    assert before - 0.01 <= found <= time.time() + 0.01


@rows(
    "change",
    "INSERT INTO t VALUES (1, 'new') ON CONFLICT (k) DO UPDATE SET v = 'new' WHERE v = 'old' RETURNING 1",
    "INSERT INTO t VALUES (2, 'new') ON CONFLICT (k) DO UPDATE SET v = 'new' WHERE v = 'none' RETURNING 1",
    "INSERT INTO t VALUES (3, 'new') RETURNING 1",
    "UPDATE t SET v = 'new' RETURNING 1",
    "DELETE FROM t WHERE k = 9 RETURNING 1",
)
def test_sqlite_counts_the_rows_that_returning_one_would_give(change: str) -> None:
    connections = [sqlite3.connect(":memory:") for _ in range(2)]
    for connection in connections:
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    counted = sqlite_count(change)
    assert counted is not None
    assert len(connections[0].execute(change).fetchall()) == connections[1].execute(counted).rowcount
    for connection in connections:
        connection.close()


def test_other_statements_are_not_counted() -> None:
    assert sqlite_count("SELECT 1") is None
    assert sqlite_count("UPDATE t SET v = 1 RETURNING fence") is None
