"""`bespeak store ledger` shows balances and entries, and fails if they do not agree."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bespeak.app.cli.main import bespeak
from bespeak.extensions.payments.store import HELD, MoveMoney, OpenAccount, account_of
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Statement

ACME = account_of("acme")


class Forge(Command, frozen=True):
    def steps(self) -> Any:
        yield Statement("UPDATE ledger_accounts SET balance = 5 WHERE account = ?", (ACME,))


def fill(place: Path, *commands: Command) -> None:
    async def run() -> None:
        opened = open_store(str(place))
        await opened.start()
        for command in commands:
            await opened.do(command)
        await opened.close()

    asyncio.run(run())


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bespeak, ["store", "ledger", *map(str, arguments)], standalone_mode=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "store.db"
    fill(place, OpenAccount(ACME, "EUR", 1000), MoveMoney("pur-1/hold", ACME, HELD, "EUR", 250))
    return place


def test_balances_and_entries_are_shown_and_a_difference_between_them_is_a_fault(place: Path) -> None:
    shown = run("--store", place)
    assert shown.return_value == 0
    assert f"{ACME:<40}  {'7.50 EUR':>20}\n" in shown.output
    assert "-2.50 EUR  pur-1/hold\n" in shown.output
    shown = json.loads(run("--store", place, "--account", HELD, "--json").output)
    assert shown["accounts"] == [{"account": HELD, "currency": "EUR", "balance": "2.50", "credit": "0.00"}]
    assert [(one["amount"], one["transaction_id"]) for one in shown["entries"]] == [("2.50", "pur-1/hold")]
    assert shown["faults"] == []
    fill(place, Forge())
    shown = run("--store", place)
    assert (shown.return_value, f"does not agree: account {ACME} EUR" in shown.output) == (1, True)


def test_an_empty_ledger_says_so(tmp_path: Path) -> None:
    fill(tmp_path / "new.db")
    assert run("--store", tmp_path / "new.db").output == "no accounts\n"
