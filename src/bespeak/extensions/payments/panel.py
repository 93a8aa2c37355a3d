"""The panel of payments: accounts, the latest entries of the ledger, and whether both agree."""

from __future__ import annotations

from bespeak.extensions.payments.purchases import HELD, PENDING, PURCHASE, decode
from bespeak.extensions.payments.settings import Money
from bespeak.extensions.payments.store import Account, CheckLedger, LedgerEntry, ListAccounts, ListEntries
from bespeak.state.store.commands.records import ListRecords
from bespeak.terminal import panels

_COMMAND = "bespeak store ledger"
_LEDGER = "ledger"  # key of the whole ledger


async def show(request: panels.PanelRequest) -> list[panels.Block]:
    (before,) = panels.read_cursor(request.after, (2**62,))
    found: list[LedgerEntry] = await request.store.read(ListEntries(None, panels.MOST_ROWS + 1, before))
    shown, rest = panels.page(found, lambda entry: (entry.position,))
    entries = [
        panels.row(
            str(one.position),
            panels.written(one.at),
            one.account,
            str(Money(one.amount, one.currency)),
            one.transaction_id,
        )
        for one in shown
    ]
    accounts: list[Account] = await request.store.read(ListAccounts(panels.MOST_ROWS))
    balances = [
        panels.row(
            f"{one.account} {one.currency}",
            one.account,
            str(Money(one.balance, one.currency)),
            str(Money(one.credit, one.currency)),
        )
        for one in accounts
    ]
    listed = ListRecords(PURCHASE, states=(HELD, PENDING), limit=panels.MOST_ROWS)
    purchases = [
        panels.row(
            one.record_id,
            str(decode(one.data).money),
            one.owner[:12],
            panels.written(one.created),
            panels.written(one.due),
            state=one.state,
        )
        for one in await request.store.read(listed)
    ]
    whole = [panels.Row(_LEDGER, ["Balances against entries"], (panels.SHOW,))]
    check = {panels.SHOW: panels.Action("Check", command=_COMMAND)}
    nothing, open_ones = "Nothing was paid.", f"bespeak store records --kind {PURCHASE}"
    return [
        panels.Table("Latest entries", ("When", "Account", "Amount", "For"), entries, {}, rest, nothing, _COMMAND),
        panels.Table("Accounts", ("Account", "Balance", "Credit"), balances, empty="No accounts.", command=_COMMAND),
        panels.Table(
            "Purchases under way",
            ("Price", "Buyer", "Since", "Until"),
            purchases,
            empty="No purchase is under way.",
            command=open_ones,
        ),
        panels.Table("Ledger", ("What",), whole, check, command=_COMMAND),
    ]


async def show_one(request: panels.PanelRequest) -> list[panels.Block] | None:
    """Compare the balances with the entries."""
    if request.key != _LEDGER:
        return None
    faults: list[str] = await request.store.read(CheckLedger())
    rows = [panels.row(fault, fault, state="failed") for fault in faults[: panels.MOST_ROWS]]
    return [panels.Table("Does not agree", ("What",), rows, empty="Balances and entries agree.", command=_COMMAND)]
