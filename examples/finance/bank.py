"""The handlers of finance.agis, over a small ledger in an SQLite file that is made when it is missing."""

from __future__ import annotations

import sqlite3
import uuid
from datetime import UTC, date, datetime
from pathlib import Path

from bespeak import Refusal

LEDGER = Path(__file__).with_name("ledger.sqlite3")
LIMIT = 10_000
"""The most that one transfer may move."""
LONGEST_PERIOD = 366
ACCOUNTS = {"acc-1": "EUR", "acc-2": "EUR", "acc-3": "USD"}
"""Account = its currency."""

TABLE = """
CREATE TABLE transactions (
    id INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL,
    date DATE NOT NULL,
    amount REAL NOT NULL,
    currency TEXT NOT NULL,
    memo TEXT,
    pending BOOLEAN NOT NULL DEFAULT 0
)
"""
INSERT = "INSERT INTO transactions (account_id, date, amount, currency, memo, pending) VALUES (?, ?, ?, ?, ?, ?)"
OPENING = [
    ("acc-1", "2026-09-28", 2500.0, "EUR", "Salary", 0),
    ("acc-1", "2026-10-01", -950.0, "EUR", "Rent", 0),
    ("acc-1", "2026-10-03", -42.5, "EUR", "Groceries", 0),
    ("acc-1", "2026-10-05", -18.9, "EUR", "Books", 1),
    ("acc-2", "2026-10-01", 950.0, "EUR", "Rent of flat 4", 0),
    ("acc-3", "2026-10-02", 300.0, "USD", "Refund", 0),
]


def open_ledger() -> sqlite3.Connection:
    """Open the ledger; fill a new one."""
    connection = sqlite3.connect(LEDGER)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            connection.execute(TABLE)
            connection.execute("CREATE INDEX by_account ON transactions (account_id, date)")
            connection.executemany(INSERT, OPENING)
    return connection


open_ledger().close()


def transfer(  # noqa: PLR0917 - the fields of the draft
    source_account_id: str,
    destination_account_id: str,
    amount: float,
    currency: str,
    memo: str = "",
    scheduled_date: date | None = None,
) -> dict[str, object]:
    for account in (source_account_id, destination_account_id):
        if account not in ACCOUNTS:
            raise Refusal("account_not_found", f"There is no account {account}.")
        if ACCOUNTS[account] != currency:
            raise Refusal("currency_mismatch", f"{account} is an account in {ACCOUNTS[account]}.")
    if amount > LIMIT:
        raise Refusal("limit_exceeded", f"One transfer moves at most {LIMIT}.")
    now = datetime.now(UTC)
    day = (scheduled_date or now.date()).isoformat()
    pending = scheduled_date is not None and scheduled_date > now.date()
    connection = open_ledger()
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        balance = "SELECT coalesce(sum(amount), 0) FROM transactions WHERE account_id = ?"
        [held] = connection.execute(balance, [source_account_id]).fetchone()
        if held < amount:
            raise Refusal("insufficient_funds", "The account does not hold that much.")
        for account, moved in ((source_account_id, -amount), (destination_account_id, amount)):
            connection.execute(INSERT, (account, day, moved, currency, memo, pending))
    connection.close()
    return {
        "transfer_id": str(uuid.uuid4()),
        "status": "scheduled" if pending else "done",
        "timestamp": now.isoformat(),
        "confirmation_code": uuid.uuid4().hex[:8].upper(),
    }


def reconcile(
    id: str,  # noqa: A002 - the draft calls it so
    from_date: date | None = None,
    to_date: date | None = None,
    include_pending: bool = False,
) -> dict[str, object]:
    if id not in ACCOUNTS:
        raise Refusal("account_not_found", f"There is no account {id}.")
    to_date = to_date or datetime.now(UTC).date()
    from_date = from_date or to_date.replace(month=1, day=1)
    if (to_date - from_date).days > LONGEST_PERIOD:
        raise Refusal("period_too_large", f"A period has at most {LONGEST_PERIOD} days.")
    connection = open_ledger()
    found = connection.execute(
        "SELECT id, currency FROM transactions WHERE account_id = ? AND date BETWEEN ? AND ? AND pending <= ?",
        [id, from_date.isoformat(), to_date.isoformat(), include_pending],
    ).fetchall()
    connection.close()
    wrong = [{"transaction_id": number, "currency": currency} for number, currency in found if currency != ACCOUNTS[id]]
    return {
        "reconciliation_id": str(uuid.uuid4()),
        "discrepancies": wrong,
        "status": "discrepancies" if wrong else "reconciled",
        "period_covered": f"{from_date} to {to_date}",
    }
