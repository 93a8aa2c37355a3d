"""The SQL of commands, as each database takes it."""

from __future__ import annotations

import sqlite3
import time

import pytest

from bespeak.state.store.sql import postgres_sql, sqlite_count, sqlite_sql


def test_parameters_are_numbered_for_postgresql_and_left_for_sqlite() -> None:
    assert postgres_sql("SELECT ? + ?, '{other}'") == "SELECT $1 + $2, '{other}'"
    assert sqlite_sql("SELECT ? + ?, '{other}'") == "SELECT ? + ?, '{other}'"


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


def test_sequence_is_advanced_after_an_import_if_the_database_does_not() -> None:
    assert sqlite_sql("{advance audit}") == "SELECT 1"
    sql = postgres_sql("{advance audit}")
    assert "pg_get_serial_sequence('audit', 'position')" in sql
    assert "FROM audit" in sql


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (1, 'new') ON CONFLICT (k) DO UPDATE SET v = 'new' WHERE v = 'old' RETURNING 1",
        "INSERT INTO t VALUES (2, 'new') ON CONFLICT (k) DO UPDATE SET v = 'new' WHERE v = 'none' RETURNING 1",
        "INSERT INTO t VALUES (3, 'new') RETURNING 1",
        "UPDATE t SET v = 'new' RETURNING 1",
        "DELETE FROM t WHERE k = 9 RETURNING 1",
    ],
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
