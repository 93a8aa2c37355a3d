"""Money is neither made nor lost: entries sum to zero, and no balance falls below its limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.state.store.single import only

from bespeak.extensions.payments.store import (
    HELD,
    SALES,
    CheckLedger,
    ListAccounts,
    ListEntries,
    MoveMoney,
    OpenAccount,
    account_of,
)
from bespeak.state.store.store import Command, Conflict, Statement, Store

pytestmark = pytest.mark.anyio

ACME = account_of("acme")


def hold(name: str, amount: int, **fields: Any) -> MoveMoney:
    return MoveMoney(name, ACME, HELD, "EUR", amount, **fields)


async def balances(store: Store) -> dict[str, int]:
    return {found.account: found.balance for found in await store.read(ListAccounts())}


async def test_money_moves_from_one_account_to_another(store: Store) -> None:
    assert await only(store, OpenAccount(ACME, "EUR", 1000)) is True
    assert await only(store, hold("p1/hold", 300)) is True
    assert await only(store, MoveMoney("p1/settle", HELD, SALES, "EUR", 300)) is True
    assert await balances(store) == {"opening": -1000, ACME: 700, HELD: 0, SALES: 300}
    latest = await store.read(ListEntries(limit=2))
    assert {(entry.account, entry.amount) for entry in latest} == {(HELD, -300), (SALES, 300)}
    assert [entry.amount for entry in await store.read(ListEntries(ACME))] == [-300, 1000]
    assert await store.read(CheckLedger()) == []


async def test_a_transaction_is_posted_once(store: Store) -> None:
    await only(store, OpenAccount(ACME, "EUR", 1000))
    assert (await only(store, hold("p1/hold", 300)), await only(store, hold("p1/hold", 300))) == (True, False)
    assert await only(store, hold("p1/hold", 301)) == Conflict("differs", {"transaction_id": "p1/hold"})
    assert (await balances(store))[ACME] == 700


async def test_a_balance_stays_above_its_credit_limit(store: Store) -> None:
    await only(store, OpenAccount(ACME, "EUR", 100, credit=50))
    too_much = Conflict("insufficient-funds", {"account": ACME, "currency": "EUR"})
    assert await only(store, hold("p1/hold", 151)) == too_much
    assert await only(store, hold("p2/hold", 150)) is True
    assert await only(store, hold("p3/hold", 1)) == too_much


async def test_an_account_is_opened_once_and_its_limit_changes(store: Store) -> None:
    await only(store, OpenAccount(ACME, "EUR", 100))
    assert await only(store, OpenAccount(ACME, "EUR", 900, credit=7)) is False
    [found] = [one for one in await store.read(ListAccounts()) if one.account == ACME]
    assert (found.balance, found.credit) == (100, 7)


async def test_accounts_that_are_missing_or_too_full_take_nothing(store: Store) -> None:
    assert await only(store, hold("p1/hold", 1)) == Conflict("no-account", {"account": ACME, "currency": "EUR"})
    await only(store, OpenAccount(ACME, "EUR", 2**62 - 1))
    assert await only(store, OpenAccount(account_of("bob"), "EUR", 2)) == Conflict(
        "insufficient-funds", {"account": "opening", "currency": "EUR"}
    )
    assert await only(store, OpenAccount(account_of("bob"), "EUR", credit=2)) is True
    moved = MoveMoney("p2", account_of("bob"), ACME, "EUR", 2)
    assert await only(store, moved) == Conflict("too-much", {"account": ACME, "currency": "EUR"})
    assert await store.read(CheckLedger()) == []


async def test_processes_that_spend_at_once_do_not_overdraw(first: Store, second: Store) -> None:
    await only(first, OpenAccount(ACME, "EUR", 10))
    done = await asyncio.gather(*(only(store, hold(f"p{n}", 1)) for n in range(15) for store in (first, second)))
    assert sum(one is True for one in done) == 10
    assert await balances(first) == {"opening": -10, ACME: 0, HELD: 10}
    assert await second.read(CheckLedger()) == []


async def test_accounts_without_a_row_hold_up_nobody_and_are_posted_once(first: Store, second: Store) -> None:
    await only(first, OpenAccount(ACME, "EUR", 10))
    await only(first, hold("p/hold", 4))
    settle = MoveMoney("p/settle", HELD, SALES, "EUR", 4)
    done = await asyncio.gather(*(only(store, settle) for _ in range(8) for store in (first, second)))
    assert sorted(done) == [False] * 15 + [True]
    assert await balances(second) == {"opening": -10, ACME: 6, HELD: 0, SALES: 4}
    assert await second.read(CheckLedger()) == []


async def test_the_check_names_an_account_that_paid_more_than_it_got(store: Store) -> None:
    assert await only(store, MoveMoney("p/settle", HELD, SALES, "EUR", 4)) is True
    assert await store.read(CheckLedger()) == ["account held EUR"]


async def test_balances_of_accounts_that_had_a_row_are_their_entries(store: Store) -> None:
    await only(store, OpenAccount(ACME, "EUR", 10))
    await only(store, hold("p/hold", 4))
    await only(store, _OldRow())  # as an older release has kept and exported it
    await only(store, hold("q/hold", 3))
    assert await balances(store) == {"opening": -10, ACME: 3, HELD: 7}
    assert await store.read(CheckLedger()) == []


async def test_the_check_names_what_does_not_agree(store: Store) -> None:
    await only(store, OpenAccount(ACME, "EUR", 10))
    await only(store, _Damage())
    assert await store.read(CheckLedger()) == [f"transaction opening {ACME} EUR", f"account {ACME} EUR"]


class _OldRow(Command, frozen=True):
    def steps(self) -> Any:
        yield Statement("INSERT INTO ledger_accounts (account, currency, balance, credit) VALUES ('held', 'EUR', 4, 0)")


class _Damage(Command, frozen=True):
    def steps(self) -> Any:
        yield Statement("UPDATE ledger_entries SET amount = 11 WHERE account = ?", (ACME,))
