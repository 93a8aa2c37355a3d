"""Money as a whole number of the smallest unit of a currency, and the settings of payments: `[payments]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import msgspec

from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.settings import setting, tables
from bespeak.text.reading.table import Table

MOST: Final = 10**15  # largest amount in smallest units: sums of a thousand fit into every database
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_VALUE: Final = re.compile(r"[0-9]{1,15}(?:[.]([0-9]{1,6}))?")
# ISO 4217; every other currency has two decimal places.
_WITHOUT_DECIMALS: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_WITH_THREE: Final = "BHD IQD JOD KWD LYD OMR TND"
_PLACES: Final = {**dict.fromkeys(_WITHOUT_DECIMALS.split(), 0), **dict.fromkeys(_WITH_THREE.split(), 3)}


class Money(msgspec.Struct, frozen=True):
    minor: int  # amount in the smallest unit, such as cents
    currency: str

    @property
    def amount(self) -> Decimal:
        return Decimal(self.minor).scaleb(-places_of(self.currency))

    def document(self) -> dict[str, str]:
        return {"value": f"{self.amount:f}", "currency": self.currency}

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"


def places_of(currency: str) -> int:
    return _PLACES.get(currency, 2)


def read_money(value: str | float, currency: str) -> Money | str:
    """Parse an amount, or return what is wrong with it. A JSON number has no decimals here: they would be binary."""
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    found = None if isinstance(value, float) and not value.is_integer() else _VALUE.fullmatch(text)
    if found is None:
        return f"is {text[:40]!r}; write a string of digits, with decimals behind a point"
    places = places_of(currency)
    if len((found[1] or "").rstrip("0")) > places:
        return f"is {text[:40]}, but {currency} has {places} decimal places"
    minor = int(Decimal(text).scaleb(places))
    return Money(minor, currency) if minor <= MOST else f"is {text[:40]}, which is more than {Money(MOST, currency)}"


LEDGER: Final = "ledger"  # the provider that keeps the accounts in the store
_DAY: Final = 86400
# Without TLS only to the same machine: the requests carry a token and move money.
ADDRESS: Final = re.compile(r"https://[!-~]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/[!-~]*)?")


def _currency(text: str) -> str | None:
    return text if _CURRENCY.fullmatch(text) else None


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
        read = read_money(text, self.currency)
        assert isinstance(read, Money), "checked"
        return read


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentSettings:
    """Who moves the money of PURCHASE, and how long it is held."""

    provider: str = setting(
        LEDGER,
        "`ledger` for accounts in the store, or the address of a payment provider.",
        parse=lambda text: text if text == LEDGER or ADDRESS.fullmatch(text) else None,
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
