"""`bespeak store ledger`: the accounts of purchases, their latest entries, and whether both agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.extensions.payments.settings import Money
from bespeak.extensions.payments.store import Account, CheckLedger, LedgerEntry, ListAccounts, ListEntries
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.store import Store
from bespeak.terminal import EXIT_GOOD, EXIT_REFUSED
from bespeak.terminal.console import json_option, limit_option, line, print_result
from bespeak.terminal.target_store import store_options, visit_store

_MOST: Final = 10_000
_AMOUNTS: Final = ("balance", "credit", "amount")


@click.command(short_help="Show the accounts of purchases.")
@store_options
@click.option("--account", help="Only this account, such as `principal/acme`, `held` or `sales`.")
@limit_option("entries", 20)
@json_option
def ledger(*, target: str, override: str | None, account: str | None, limit: int, as_json: bool) -> int:
    """Show the balances of the ledger and its latest entries, the latest first.

    The exit code is 1 if a transaction does not sum to zero, or a balance differs from its entries.
    """

    async def look(store: Store) -> tuple[list[Account], list[LedgerEntry], list[str]]:
        accounts = await store.read(ListAccounts(limit=_MOST))
        return accounts, await store.read(ListEntries(account, limit)), await store.read(CheckLedger())

    accounts, entries, faults = visit_store(target, override, look)
    accounts = [one for one in accounts if account in (None, one.account)]
    told = {"accounts": [_tell(one) for one in accounts], "entries": [_tell(one) for one in entries], "faults": faults}
    print_result(told, _lines(accounts, entries, faults), as_json=as_json)
    return EXIT_REFUSED if faults else EXIT_GOOD


def _tell(one: Account | LedgerEntry) -> dict[str, Any]:
    told = msgspec.structs.asdict(one)
    told |= {name: Money(told[name], one.currency).document()["value"] for name in _AMOUNTS if name in told}
    return told | ({"at": write_instant(one.at)} if isinstance(one, LedgerEntry) else {})


def _lines(accounts: list[Account], entries: list[LedgerEntry], faults: list[str]) -> Iterator[Text]:
    yield from (line(f"{one.account:<40}  {Money(one.balance, one.currency)!s:>20}") for one in accounts)
    if not accounts:
        yield line("no accounts")
    for entry in entries:
        money = Money(entry.amount, entry.currency)
        yield line(f"{write_instant(entry.at)}  {entry.account:<40}  {money!s:>20}  {entry.transaction_id}")
    yield from (line(("does not agree: ", "bold red"), fault) for fault in faults)
