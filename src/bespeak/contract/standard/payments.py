"""Settings of payments: `[payments]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bespeak.contract.money import Money, is_currency, read_money
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.setting import setting, tables
from bespeak.text.reading.table import Table

LEDGER: Final = "ledger"
"""The provider that keeps the accounts in the store."""
_DAY: Final = 86400
# Without TLS only to the same machine: the requests carry a token and move money.
_ADDRESS: Final = re.compile(r"https://[!-~]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/[!-~]*)?")


def _provider(text: str) -> str | None:
    return text if text == LEDGER or _ADDRESS.fullmatch(text) else None


def _currency(text: str) -> str | None:
    return text if is_currency(text) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    """An account of the ledger in the store. It is opened when a server first starts with it."""

    principal: str = setting("", "The principal who owns it: a principal_id or an Agent-ID.", required=True)
    currency: str = setting(
        "", "The currency.", required=True, parse=_currency, form="a code of ISO 4217", advice="Write it like EUR."
    )
    opening: str = setting("0", "The balance with which it is opened, such as `1000.00`.")
    credit: str = setting("0", "The amount by which it may be overdrawn; a change counts from the next start.")

    def checked(self, table: Table) -> AccountSettings:
        """Report amounts that are not exact; such an account is empty."""
        for key, text in (("opening", self.opening), ("credit", self.credit)):
            money = read_money(text, self.currency)
            if isinstance(money, str):
                table.error(WRONG_VALUE, key, f"`{key}` {money}", "Write the amount as a string, like 1000.00.")
                return AccountSettings(principal=self.principal, currency=self.currency)
        return self

    def money(self, text: str) -> Money:
        """Return one of the amounts."""
        read = read_money(text, self.currency)
        assert isinstance(read, Money), "checked"
        return read


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentSettings:
    """Who moves the money of PURCHASE, and how long it is held."""

    provider: str = setting(
        LEDGER,
        "`ledger` for accounts in the store, or the address of a payment provider.",
        parse=_provider,
        form="ledger or an https:// address",
        advice="An http:// address is valid for the same machine only.",
        security=True,
    )
    token_variable: str = setting(
        "BESPEAK_PAYMENTS_TOKEN", "The environment variable with the bearer token for the provider."
    )
    timeout: float = setting(
        10, "Seconds within which the provider must answer; later its answer counts as unknown.", bounds=(0.1, 300)
    )
    hold: float = setting(900, "Seconds for which the money of an unconfirmed purchase is held.", bounds=(1, 30 * _DAY))
    currencies: tuple[str, ...] = setting(
        ("EUR", "GBP", "USD"), "The currencies that can be paid in.", parse=_currency, form="a code of ISO 4217"
    )
    merchant_id: str | None = setting(None, "The Merchant-ID that buyers must send. Without it: the server_id.")
    accounts: tuple[AccountSettings, ...] = tables(AccountSettings)
