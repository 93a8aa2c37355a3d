"""`bespeak store ledger`: the accounts of purchases, their latest entries, and whether both agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.app.cli.console import line, print_json, print_lines
from bespeak.app.cli.decisions import visit_store
from bespeak.app.cli.main import EXIT_GOOD, EXIT_REFUSED
from bespeak.app.cli.target_store import store_options
from bespeak.contract.payments import Money
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.commands.ledger import Account, CheckLedger, LedgerEntry, ListAccounts, ListEntries
from bespeak.state.store.store import Store

_MOST: Final = 10_000


@click.command(short_help="Show the accounts of purchases.")
@store_options
@click.option("--account", help="Only this account, such as `principal/acme`, `held` or `sales`.")
@click.option(
    "--limit", type=click.IntRange(1, _MOST), default=20, show_default=True, help="Maximum number of entries."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ledger(*, target: str, override: str | None, account: str | None, limit: int, as_json: bool) -> int:
    """Show the balances of the ledger and its latest entries, the latest first.

    The exit code is 1 if a transaction does not sum to zero, or a balance differs from its entries.
    """

    async def look(store: Store) -> tuple[list[Account], list[LedgerEntry], list[str]]:
        accounts = await store.read(ListAccounts(limit=_MOST))
        entries = await store.read(ListEntries(account, limit))
        return accounts, entries, await store.read(CheckLedger())

    accounts, entries, faults = visit_store(target, override, look)
    accounts = [one for one in accounts if account in (None, one.account)]
    if as_json:
        print_json(_as_dict(accounts, entries, faults))
    else:
        print_lines(_lines(accounts, entries, faults))
    return EXIT_REFUSED if faults else EXIT_GOOD


def _as_dict(accounts: list[Account], entries: list[LedgerEntry], faults: list[str]) -> dict[str, Any]:
    return {
        "accounts": [
            {
                "account": one.account,
                "currency": one.currency,
                "balance": Money(one.balance, one.currency).document()["value"],
                "credit": Money(one.credit, one.currency).document()["value"],
            }
            for one in accounts
        ],
        "entries": [
            {
                **msgspec.structs.asdict(entry),
                "amount": Money(entry.amount, entry.currency).document()["value"],
                "at": write_instant(entry.at),
            }
            for entry in entries
        ],
        "faults": faults,
    }


def _lines(accounts: list[Account], entries: list[LedgerEntry], faults: list[str]) -> Iterator[Text]:
    for one in accounts:
        yield line(f"{one.account:<40}  {Money(one.balance, one.currency)!s:>20}")
    if not accounts:
        yield line("no accounts")
    for entry in entries:
        money = Money(entry.amount, entry.currency)
        yield line(f"{write_instant(entry.at)}  {entry.account:<40}  {money!s:>20}  {entry.transaction_id}")
    for fault in faults:
        yield line(("does not agree: ", "bold red"), fault)
