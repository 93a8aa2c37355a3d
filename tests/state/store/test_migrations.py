"""Migrations: forward only, and never changed once they were released."""

from __future__ import annotations

import re
import sqlite3

import pytest

from bespeak.state.store.sql import CURRENT, MIGRATIONS, POSTGRES_WORDS, SQLITE_WORDS, sqlite_sql, statements
from bespeak.state.store.transfer import shapes


def test_the_version_is_the_number_of_migrations() -> None:
    assert len(MIGRATIONS) == CURRENT
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
        number for number, migration in enumerate(MIGRATIONS) if migration[0].startswith("DELETE FROM outbox")
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
    used = {word for migration in MIGRATIONS for text in migration for word in re.findall(r"\{(\w+)\}", text)}
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
