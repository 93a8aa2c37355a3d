"""The SQL of commands, as each database takes it."""

from __future__ import annotations

import sqlite3
import time

import pytest

from bespeak.state.store.dialect import postgres_sql, sqlite_sql


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
