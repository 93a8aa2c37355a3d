"""The panel of payments: accounts, the latest entries of the ledger, and whether both agree."""

from __future__ import annotations

from bespeak.extensions.payments.purchases import HELD, PENDING, PURCHASE, decode
from bespeak.extensions.payments.settings import Money
from bespeak.extensions.payments.store import Account, CheckLedger, LedgerEntry, ListAccounts, ListEntries
from bespeak.runtime.panels import (
    MOST_ROWS,
    SHOW,
    Action,
    Block,
    PanelRequest,
    TableBlock,
    TableRow,
    cells,
    page,
    read_cursor,
    written,
)
from bespeak.state.store.commands.records import ListRecords

_COMMAND = "bespeak store ledger"
_LEDGER = "ledger"  # key of the whole ledger


async def show(request: PanelRequest) -> list[Block]:
    (before,) = read_cursor(request.after, (2**62,))
    found: list[LedgerEntry] = await request.store.read(ListEntries(None, MOST_ROWS + 1, before))
    shown, rest = page(found, lambda entry: (entry.position,))
    entries = [
        TableRow(
            str(one.position),
            cells(written(one.at), one.account, str(Money(one.amount, one.currency)), one.transaction_id),
        )
        for one in shown
    ]
    accounts: list[Account] = await request.store.read(ListAccounts(MOST_ROWS))
    balances = [
        TableRow(
            f"{one.account} {one.currency}",
            cells(one.account, str(Money(one.balance, one.currency)), str(Money(one.credit, one.currency))),
        )
        for one in accounts
    ]
    listed = ListRecords(PURCHASE, states=(HELD, PENDING), limit=MOST_ROWS)
    purchases = [
        TableRow(
            one.record_id,
            cells(str(decode(one.data).money), one.owner[:12], written(one.created), written(one.due)),
            state=one.state,
        )
        for one in await request.store.read(listed)
    ]
    whole = [TableRow(_LEDGER, ["Balances against entries"], (SHOW,))]
    check = {SHOW: Action("Check", command=_COMMAND)}
    nothing, open_ones = "Nothing was paid.", f"bespeak store records --kind {PURCHASE}"
    return [
        TableBlock("Latest entries", ("When", "Account", "Amount", "For"), entries, {}, rest, nothing, _COMMAND),
        TableBlock("Accounts", ("Account", "Balance", "Credit"), balances, empty="No accounts.", command=_COMMAND),
        TableBlock(
            "Purchases under way",
            ("Price", "Buyer", "Since", "Until"),
            purchases,
            empty="No purchase is under way.",
            command=open_ones,
        ),
        TableBlock("Ledger", ("What",), whole, check, command=_COMMAND),
    ]


async def show_one(request: PanelRequest) -> list[Block] | None:
    """Compare the balances with the entries."""
    if request.key != _LEDGER:
        return None
    faults: list[str] = await request.store.read(CheckLedger())
    rows = [TableRow(fault, cells(fault), state="failed") for fault in faults[:MOST_ROWS]]
    return [TableBlock("Does not agree", ("What",), rows, empty="Balances and entries agree.", command=_COMMAND)]
